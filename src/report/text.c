/* Numbers for people, and tables of text; the contract stands in text.h. */
#include "report/text.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

/* Three significant digits before the unit: 1.23, 12.3, 123. */
static void three_digits(char *cell, double value, const char *unit)
{
    int decimals = fabs(value) < 9.995 ? 2 : fabs(value) < 99.95 ? 1 : 0;

    snprintf(cell, RBT_CELL_ROOM, "%.*f%s", decimals, value, unit);
}

const char *rbt_show_count(char *cell, double count)
{
    static const char *const UNITS[] = {"", " k", " M", " G", " T", " P"};
    size_t unit = 0;

    if (!isfinite(count)) {
        snprintf(cell, RBT_CELL_ROOM, "-");
    } else if (fabs(count) < 1e4 && count == floor(count)) {
        snprintf(cell, RBT_CELL_ROOM, "%.0f", count);
    } else {
        for (; fabs(count) >= 999.5 && unit < 5; unit++)
            count /= 1000;
        three_digits(cell, count, UNITS[unit]);
    }
    return cell;
}

const char *rbt_show_bytes(char *cell, double bytes)
{
    static const char *const UNITS[] = {" B", " KB", " MB", " GB", " TB", " PB"};
    size_t unit = 0;

    if (!isfinite(bytes)) {
        snprintf(cell, RBT_CELL_ROOM, "-");
        return cell;
    }
    for (; bytes >= 999.5 && unit < 5; unit++)
        bytes /= 1000;
    if (unit == 0)
        snprintf(cell, RBT_CELL_ROOM, "%.0f B", bytes);
    else
        three_digits(cell, bytes, UNITS[unit]);
    return cell;
}

const char *rbt_show_seconds(char *cell, double seconds)
{
    if (!isfinite(seconds))
        snprintf(cell, RBT_CELL_ROOM, "-");
    else if (seconds == 0)
        snprintf(cell, RBT_CELL_ROOM, "0 s");
    else if (seconds < 999.5e-9)
        three_digits(cell, seconds * 1e9, " ns");
    else if (seconds < 999.5e-6)
        three_digits(cell, seconds * 1e6, " us");
    else if (seconds < 999.5e-3)
        three_digits(cell, seconds * 1e3, " ms");
    else if (seconds < 600)
        three_digits(cell, seconds, " s");
    else if (seconds < 2 * 3600)
        snprintf(cell, RBT_CELL_ROOM, "%.0f min %02.0f s", floor(seconds / 60), floor(fmod(seconds, 60)));
    else
        snprintf(cell, RBT_CELL_ROOM, "%.0f h %02.0f min", floor(seconds / 3600), floor(fmod(seconds / 60, 60)));
    return cell;
}

const char *rbt_show_percent(char *cell, double fraction)
{
    if (!isfinite(fraction))
        snprintf(cell, RBT_CELL_ROOM, "-");
    else
        snprintf(cell, RBT_CELL_ROOM, "%.1f %%", 100 * fraction);
    return cell;
}

const char *rbt_show_real(char *cell, double value)
{
    if (!isfinite(value))
        snprintf(cell, RBT_CELL_ROOM, "-");
    else if (value != 0 && (fabs(value) < 1e-4 || fabs(value) >= 1e6))
        snprintf(cell, RBT_CELL_ROOM, "%.2e", value);
    else
        snprintf(cell, RBT_CELL_ROOM, "%.4g", value);
    return cell;
}

const char *rbt_show_spread(char *cell, double value)
{
    if (!isfinite(value))
        snprintf(cell, RBT_CELL_ROOM, "-");
    else
        snprintf(cell, RBT_CELL_ROOM, "%.2g", value);
    return cell;
}

void rbt_grid_add(rbt_grid *grid, const char *cell)
{
    rbt_array_push(&grid->cells, rbt_strdup(cell));
}

static size_t column_width(const rbt_grid *grid, size_t column)
{
    size_t width = 0;

    for (size_t i = column; i < grid->cells.count; i += grid->columns)
        if (strlen(grid->cells.at[i]) > width)
            width = strlen(grid->cells.at[i]);
    return width;
}

void rbt_grid_print(const rbt_grid *grid, const char *indent, FILE *file)
{
    size_t *width = rbt_alloc(grid->columns, sizeof *width);

    RBT_ASSERT(grid->cells.count % grid->columns == 0);
    for (size_t c = 0; c < grid->columns; c++)
        width[c] = column_width(grid, c);
    for (size_t i = 0; i < grid->cells.count; i++) {
        size_t c = i % grid->columns;
        bool last = c + 1 == grid->columns;
        if (c == 0)
            fputs(indent, file);
        if (c < grid->left)
            fprintf(file, "%-*s", last ? 0 : (int)width[c], grid->cells.at[i]);
        else
            fprintf(file, "%*s", (int)width[c], grid->cells.at[i]);
        fputs(last ? "\n" : "  ", file);
    }
    rbt_free(width);
}

void rbt_grid_deinit(rbt_grid *grid)
{
    for (size_t i = 0; i < grid->cells.count; i++)
        rbt_free(grid->cells.at[i]);
    rbt_array_free(&grid->cells);
}
