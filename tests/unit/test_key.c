/* Proves src/runtime/cluster/key.c: what is written is read again, files of others' or wrong content are refused
 * without a word of the secret, and proofs depend on everything they are made from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/cluster/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* With the secret 00 01 02 ... 1f. */
#define KNOWN_SECRET "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define KNOWN_ID     "c136c6911796326a"
#define KNOWN        "rubato-key-1 " KNOWN_ID " " KNOWN_SECRET

static void write_text(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void two_new_keys_differ(void **state)
{
    (void)state;
    rbt_error error;
    rbt_key a, b;
    assert_int_equal(rbt_key_create(&a, &error), RBT_OK);
    assert_int_equal(rbt_key_create(&b, &error), RBT_OK);
    assert_memory_not_equal(a.secret, b.secret, RBT_KEY_SECRET);
    assert_memory_not_equal(a.id, b.id, RBT_KEY_ID);
    uint8_t one[RBT_KEY_NONCE], two[RBT_KEY_NONCE];
    assert_int_equal(rbt_key_nonce(one, &error), RBT_OK);
    assert_int_equal(rbt_key_nonce(two, &error), RBT_OK);
    assert_memory_not_equal(one, two, RBT_KEY_NONCE);
}

static void a_wiped_key_is_nothing_but_zeros(void **state)
{
    (void)state;
    rbt_error error;
    rbt_key key, zero;
    memset(&zero, 0, sizeof zero);
    assert_int_equal(rbt_key_create(&key, &error), RBT_OK);
    rbt_key_wipe(&key);
    assert_memory_equal(&key, &zero, sizeof key);
}

static void a_written_key_is_read_again_and_is_its_owners_alone(void **state)
{
    (void)state;
    rbt_error error;
    rbt_key key, again;
    struct stat status;
    assert_int_equal(rbt_key_create(&key, &error), RBT_OK);
    mode_t mask = umask(0);
    assert_int_equal(rbt_key_write(&key, "job.key", &error), RBT_OK);
    umask(mask);
    assert_int_equal(stat("job.key", &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(rbt_key_read("job.key", &again, &error), RBT_OK);
    assert_memory_equal(&key, &again, sizeof key);

    assert_int_equal(rbt_key_write(&again, "job.key", &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "job.key: is there already"));
    assert_int_equal(rbt_key_read("job.key", &again, &error), RBT_OK);
    assert_memory_equal(&key, &again, sizeof key);
    assert_int_equal(unlink("job.key"), 0);
}

static void a_key_that_others_may_read_or_write_is_refused_with_the_remedy(void **state)
{
    (void)state;
    static const mode_t modes[] = {0640, 0604, 0620, 0602, 0644, 0660, 0777};
    rbt_error error;
    rbt_key key;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        write_text("open.key", KNOWN "\n", modes[i]);
        assert_int_equal(rbt_key_read("open.key", &key, &error), RBT_E_DATA);
        assert_non_null(strstr(error.text, "`chmod 600 open.key`"));
    }
    write_text("open.key", KNOWN "\n", 0400);
    assert_int_equal(rbt_key_read("open.key", &key, &error), RBT_OK);
    assert_int_equal(unlink("open.key"), 0);
}

static void a_key_that_is_not_there_or_is_a_folder_is_named(void **state)
{
    (void)state;
    rbt_error error;
    rbt_key key;
    assert_int_equal(rbt_key_read("nowhere.key", &key, &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "nowhere.key"));
    assert_non_null(strstr(error.text, "rubato key new"));
    assert_int_equal(mkdir("folder.key", 0700), 0);
    assert_int_equal(rbt_key_read("folder.key", &key, &error), RBT_E_DATA);
    assert_non_null(strstr(error.text, "folder.key: is no plain file"));
    assert_int_equal(rmdir("folder.key"), 0);
    assert_int_equal(rbt_key_create(&key, &error), RBT_OK);
    assert_int_equal(rbt_key_write(&key, "no/such/folder.key", &error), RBT_E_IO);
    assert_non_null(strstr(error.text, "no/such/folder.key"));
}

static void the_text_of_a_key_is_as_documented(void **state)
{
    (void)state;
    rbt_error error;
    rbt_key key;
    char text[RBT_KEY_ROOM], id[2 * RBT_KEY_ID + 1];
    static const char *const ends[] = {"", "\n", "\r\n", " \n"};
    for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++) {
        (void)snprintf(text, sizeof text, "%s%s", KNOWN, ends[e]);
        assert_int_equal(rbt_key_parse(text, "here", &key, &error), RBT_OK);
        for (size_t i = 0; i < RBT_KEY_SECRET; i++)
            assert_int_equal(key.secret[i], i);
        rbt_key_text(&key, text);
        assert_string_equal(text, KNOWN);
        rbt_key_id_text(key.id, id);
        assert_string_equal(id, KNOWN_ID);
    }
    char loud[sizeof KNOWN];
    for (size_t i = 0; i < sizeof KNOWN; i++)
        loud[i] = (char)(i < 13 || KNOWN[i] < 'a' ? KNOWN[i] : KNOWN[i] - 'a' + 'A');
    assert_int_equal(rbt_key_parse(loud, "here", &key, &error), RBT_OK);
}

static void what_is_no_key_is_refused_and_never_repeated(void **state)
{
    (void)state;
    rbt_error error;
    rbt_key key, before;
    memset(&before, 7, sizeof before);
    static const char *const bad[] = {
        "",
        "\n",
        "hunter2",
        "rubato-key-1",
        "rubato-key-1 ",
        "rubato-key-2 " KNOWN_ID " " KNOWN_SECRET,
        "rubato-key-12 " KNOWN_ID " " KNOWN_SECRET,
        "rubato-key-1  " KNOWN_ID " " KNOWN_SECRET,
        "rubato-key-1 " KNOWN_ID " " KNOWN_SECRET "0",
        "rubato-key-1 " KNOWN_ID " " KNOWN_SECRET " more",
        "rubato-key-1 " KNOWN_ID "_" KNOWN_SECRET,
        "rubato-key-1 ffffffffffffffff " KNOWN_SECRET,
        "rubato-key-1 " KNOWN_ID " 100102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "rubato-key-1 " KNOWN_ID " 0g0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        key = before;
        assert_int_equal(rbt_key_parse(bad[i], "job.key", &key, &error), RBT_E_DATA);
        assert_memory_equal(&key, &before, sizeof key);
        assert_int_equal(strncmp(error.text, "job.key: ", 9), 0);
        assert_null(strstr(error.text, "0b0c0d"));
        assert_null(strstr(error.text, "hunter2"));
    }
    for (size_t n = 0; n < strlen(KNOWN); n++) { /* every beginning of a key */
        char cut[sizeof KNOWN];
        memcpy(cut, KNOWN, n);
        cut[n] = '\0';
        assert_int_equal(rbt_key_parse(cut, "job.key", &key, &error), RBT_E_DATA);
        assert_null(strstr(error.text, "0b0c0d"));
    }
}

static void a_file_of_any_bytes_is_refused(void **state)
{
    (void)state;
    rbt_error error;
    rbt_key key;
    FILE *file = fopen("bytes.key", "we");
    assert_non_null(file);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(fputc(i % 251, file), i % 251);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod("bytes.key", 0600), 0);
    assert_int_equal(rbt_key_read("bytes.key", &key, &error), RBT_E_DATA);
    assert_int_equal(unlink("bytes.key"), 0);
}

static void standard_input_gives_its_first_line_and_keeps_the_rest(void **state)
{
    (void)state;
    rbt_error error;
    rbt_key key;
    int ends[2], saved = dup(STDIN_FILENO);
    char rest[8] = "";
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], KNOWN "\nrest", sizeof KNOWN + 4), sizeof KNOWN + 4);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(rbt_key_read("-", &key, &error), RBT_OK);
    assert_int_equal(key.secret[31], 31);
    assert_int_equal(read(STDIN_FILENO, rest, sizeof rest), 4);
    assert_string_equal(rest, "rest");
    assert_int_equal(rbt_key_read("-", &key, &error), RBT_E_DATA);
    assert_int_equal(strncmp(error.text, "standard input: ", 16), 0);
    if (saved >= 0) {
        assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
        close(saved);
    }
    close(ends[0]);
}

static void a_proof_depends_on_key_role_and_both_nonces(void **state)
{
    (void)state;
    rbt_error error;
    rbt_key key, other;
    uint8_t a[RBT_KEY_NONCE] = {1}, b[RBT_KEY_NONCE] = {2}, right[RBT_KEY_PROOF], proof[RBT_KEY_PROOF];
    assert_int_equal(rbt_key_create(&key, &error), RBT_OK);
    assert_int_equal(rbt_key_create(&other, &error), RBT_OK);
    rbt_key_prove(&key, "dialer", a, b, right);
    rbt_key_prove(&key, "dialer", a, b, proof);
    assert_true(rbt_key_proof_equals(right, proof));
    rbt_key_prove(&other, "dialer", a, b, proof);
    assert_false(rbt_key_proof_equals(right, proof));
    rbt_key_prove(&key, "acceptor", a, b, proof);
    assert_false(rbt_key_proof_equals(right, proof));
    rbt_key_prove(&key, "dialer", b, a, proof);
    assert_false(rbt_key_proof_equals(right, proof));
    b[RBT_KEY_NONCE - 1] = 1;
    rbt_key_prove(&key, "dialer", a, b, proof);
    assert_false(rbt_key_proof_equals(right, proof));
    for (size_t i = 0; i < RBT_KEY_PROOF; i++) {
        memcpy(proof, right, sizeof proof);
        proof[i] ^= 128;
        assert_false(rbt_key_proof_equals(right, proof));
    }
}

static void derived_secrets_depend_on_key_and_label(void **state)
{
    (void)state;
    rbt_error error;
    rbt_key key, other;
    uint8_t one[RBT_KEY_SECRET], two[RBT_KEY_SECRET];
    assert_int_equal(rbt_key_create(&key, &error), RBT_OK);
    assert_int_equal(rbt_key_create(&other, &error), RBT_OK);
    rbt_key_derive(&key, "a", one);
    assert_memory_not_equal(one, key.secret, RBT_KEY_SECRET);
    rbt_key_derive(&key, "b", two);
    assert_memory_not_equal(one, two, RBT_KEY_SECRET);
    rbt_key_derive(&other, "a", two);
    assert_memory_not_equal(one, two, RBT_KEY_SECRET);
}

/* Reads the key as a user whose group may read it: 0 when it was taken. */
static int read_as_another(const char *path)
{
    int status = -1;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        rbt_key key;
        rbt_error error;

        if (setgid(1000) != 0 || setuid(1000) != 0)
            _exit(2);
        _exit(rbt_key_read(path, &key, &error) == RBT_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_secret_of_root_that_is_mounted_for_a_group_is_taken(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(".", 0755), 0);
    write_text("mounted.key", KNOWN "\n", 0440);
    assert_int_equal(chown("mounted.key", 0, 1000), 0);
    assert_int_equal(read_as_another("mounted.key"), 0);
    assert_int_equal(chmod("mounted.key", 0444), 0);
    assert_int_equal(read_as_another("mounted.key"), 1);
    assert_int_equal(chmod("mounted.key", 0460), 0);
    assert_int_equal(read_as_another("mounted.key"), 1);
    assert_int_equal(chmod("mounted.key", 0440), 0);
    assert_int_equal(chown("mounted.key", 1000, 1000), 0);
    assert_int_equal(read_as_another("mounted.key"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_new_keys_differ),
        cmocka_unit_test(a_wiped_key_is_nothing_but_zeros),
        cmocka_unit_test(a_written_key_is_read_again_and_is_its_owners_alone),
        cmocka_unit_test(a_key_that_others_may_read_or_write_is_refused_with_the_remedy),
        cmocka_unit_test(a_secret_of_root_that_is_mounted_for_a_group_is_taken),
        cmocka_unit_test(a_key_that_is_not_there_or_is_a_folder_is_named),
        cmocka_unit_test(the_text_of_a_key_is_as_documented),
        cmocka_unit_test(what_is_no_key_is_refused_and_never_repeated),
        cmocka_unit_test(a_file_of_any_bytes_is_refused),
        cmocka_unit_test(standard_input_gives_its_first_line_and_keeps_the_rest),
        cmocka_unit_test(a_proof_depends_on_key_role_and_both_nonces),
        cmocka_unit_test(derived_secrets_depend_on_key_and_label),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
