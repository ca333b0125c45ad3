/* What a NIC cannot be opened for: a description that cannot be read, or is none; more processes than may have it. Then it can be opened
 * as if nothing had been; no descriptor of a file is left behind. */
#include "sides.h"

#include <dirent.h>
#include <sys/wait.h>

static unsigned open_files(void)
{
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/fd");
    WANT(directory != NULL);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

static void descriptions(void)
{
    char *good = getenv("MUSUBI_SYSTEM") != NULL ? strdup(getenv("MUSUBI_SYSTEM")) : NULL, bad[] = "/tmp/vipl-opening-XXXXXX";
    VIP_NIC_HANDLE nic = (VIP_NIC_HANDLE)&good;
    int file = mkstemp(bad);
    WANT(file >= 0 && write(file, "[system\n", 8) == 8 && close(file) == 0);
    WANT(setenv("MUSUBI_SYSTEM", "/nowhere/at/all.toml", 1) == 0);
    GIVES(ERROR_RESOURCE, VipOpenNic(nic_names[0], &nic));
    WANT(setenv("MUSUBI_SYSTEM", bad, 1) == 0);
    GIVES(ERROR_RESOURCE, VipOpenNic(nic_names[0], &nic));
    WANT(nic == (VIP_NIC_HANDLE)&good);
    WANT(unlink(bad) == 0 && (good != NULL ? setenv("MUSUBI_SYSTEM", good, 1) : unsetenv("MUSUBI_SYSTEM")) == 0);
    free(good);
}

enum { MOST = 64 };
/* What holds the children: each lives until its own is closed, here and in those that were made later. */
static int holds[MOST];

/* Another process that has the NIC open until its input ends; or says that it cannot. */
static pid_t another(int count)
{
    int ends[2], told[2];
    char c = 0;
    pid_t child;
    WANT(pipe(ends) == 0 && pipe(told) == 0);
    child = fork();
    if (child == 0) {
        VIP_NIC_HANDLE nic;
        VIP_RETURN gave;
        alarm(LONGEST);
        close(ends[1]);
        while (count > 0)
            close(holds[--count]);
        gave = VipOpenNic(nic_names[0], &nic);
        if (gave != VIP_SUCCESS)
            GIVES(ERROR_RESOURCE, gave);
        CHECKS(ERROR_RESOURCE, VipOpenNic);
        c = gave == VIP_SUCCESS ? 'y' : 'n';
        WANT(write(told[1], &c, 1) == 1);
        while (read(ends[0], &c, 1) > 0)
            ;
        _exit(0);
    }
    close(ends[0]);
    close(told[1]);
    WANT(read(told[0], &c, 1) == 1);
    close(told[0]);
    holds[count] = ends[1];
    if (c == 'y')
        return child;
    close(ends[1]);
    WANT(waitpid(child, NULL, 0) == child);
    return 0;
}

/* At most 64 processes are tried: where there is no end of them, that is as good. */
static void processes(void)
{
    pid_t children[MOST];
    int i, count = 0;
    while (count < MOST && (children[count] = another(count)) != 0)
        count++;
    WANT(count > 0);
    for (i = 0; i < count; i++) {
        close(holds[i]);
        WANT(waitpid(children[i], NULL, 0) == children[i]);
    }
    /* The places of those who have gone are free again. */
    children[0] = another(0);
    WANT(children[0] != 0);
    close(holds[0]);
    WANT(waitpid(children[0], NULL, 0) == children[0]);
}

static void leaves_nothing(void)
{
    unsigned before, round;
    VIP_NIC_HANDLE nic;
    GIVES(SUCCESS, VipOpenNic(nic_names[0], &nic));
    OK(VipCloseNic(nic));
    before = open_files();
    for (round = 0; round < 10; round++) {
        GIVES(SUCCESS, VipOpenNic(nic_names[0], &nic));
        OK(VipCloseNic(nic));
    }
    WANT_EQUAL(open_files(), before);
}

int main(int count, char **arguments)
{
    begin(count, arguments);
    processes();
    descriptions();
    leaves_nothing();
    return done();
}
