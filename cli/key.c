/* rubato key: makes a job's key and tells keys apart. The secret is never printed. */
#include "cli/cli.h"

#include <string.h>

#include "base/error.h"
#include "runtime/cluster/key.h"

int cli_key(const cli_command *command, int argc, char **argv)
{
    rbt_error error = {RBT_OK, ""};
    const char *words[2] = {NULL, NULL};
    cli_arguments arguments = {.words = words, .words_room = 2};
    char id[2 * RBT_KEY_ID + 1];
    rbt_key key = {{0}, {0}};
    rbt_err err = cli_parse(&arguments, argc, argv, &error);

    if (err == RBT_OK && arguments.help) {
        cli_help(command, &arguments);
        return 0;
    }
    bool make = words[0] != NULL && strcmp(words[0], "new") == 0;
    if (err == RBT_OK && !make && (words[0] == NULL || strcmp(words[0], "show") != 0))
        err = rbt_fail(&error, RBT_E_USAGE, "%s%s%s `key new FILE` makes a key, `key show FILE` tells a key's id",
                       words[0] != NULL ? "unknown word '" : "what is to be done?", words[0] != NULL ? words[0] : "",
                       words[0] != NULL ? "';" : "");
    if (err == RBT_OK && words[1] == NULL)
        err = rbt_fail(&error, RBT_E_USAGE, "which file? write `key %s FILE`", words[0]);
    if (err == RBT_OK && make && words[1] != NULL && strcmp(words[1], "-") == 0)
        err = rbt_fail(&error, RBT_E_USAGE, "a key is not printed; name a file for it, such as job.key");
    if (err == RBT_OK && make)
        err = rbt_key_create(&key, &error);
    if (err == RBT_OK)
        err = make ? rbt_key_write(&key, words[1], &error) : rbt_key_read(words[1], &key, &error);
    if (err == RBT_OK) {
        rbt_key_id_text(key.id, id);
        printf("%s\n", id);
    }
    rbt_key_wipe(&key);
    return err == RBT_OK ? 0 : cli_fail(command, &error);
}
