/* The smallest user of the installed library: prints the version it was linked with. Built by test_consumer.sh. */
#include <rubato.h>
#include <stdio.h>

int main(void)
{
    return printf("%s\n", rbt_version()) < 0;
}
