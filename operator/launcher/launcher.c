/* Starts a stdio tool server in the container of its own image, for `tarsy mcp-gateway` in the container beside it.
 *
 * A container's standard streams belong to the container runtime, so nothing in another container can reach them. This
 * program is copied into the pod by an init container and is the first process of the server's container. The gateway
 * connects to its Unix socket, once a session, and sends two file descriptors: ends of pipes that become standard input
 * and output of a new process of the server. It parses no message and knows no token; it speaks on that socket only:
 *
 *   gateway -> launcher   "S" with the two descriptors: start; then "T" or "K": SIGTERM or SIGKILL to the process group
 *   launcher -> gateway   a line: "started" or "failed REASON"; at the end a line: "exited CODE" or "killed SIGNAL"
 *
 * A closed connection kills the process group. Each session has a supervisor process, so that a session is a plain
 * loop, and ends with it. It is linked statically and needs nothing of the image: no shell, no C library.
 *
 *   tarsy-launcher --install DIRECTORY
 *   tarsy-launcher --socket PATH -- COMMAND [ARGUMENT...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM "tarsy-launcher"
#define PATIENCE_MS 2000 /* between SIGTERM and SIGKILL when the container ends */
#define REQUEST_MS 5000  /* for a gateway that connected to send its request */
#define NOT_FOUND 127    /* the exit code of a shell in this case */

#define say(...) (fprintf(stderr, PROGRAM ": " __VA_ARGS__), fputc('\n', stderr))
#define fail(code, ...) (say(__VA_ARGS__), exit(code))

static sigset_t original_mask;

/* ---- the copy that the init container makes */

static int install(const char *directory)
{
    char path[4096], temporary[4096 + 4];
    if (snprintf(path, sizeof path, "%s/" PROGRAM, directory) >= (int)sizeof path)
        fail(2, "the name of the directory is too long");
    snprintf(temporary, sizeof temporary, "%s.new", path);
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat size;
    if (from < 0 || fstat(from, &size) < 0)
        fail(1, "cannot read this program: %s", strerror(errno));
    int to = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0555);
    if (to < 0)
        fail(1, "cannot write %s: %s", temporary, strerror(errno));
    for (off_t left = size.st_size; left > 0;) {
        ssize_t sent = sendfile(to, from, NULL, left);
        if (sent <= 0)
            fail(1, "cannot write %s: %s", temporary, sent ? strerror(errno) : "the file ended");
        left -= sent;
    }
    if (fchmod(to, 0555) < 0 || close(to) < 0 || rename(temporary, path) < 0)
        fail(1, "cannot write %s: %s", path, strerror(errno));
    return 0;
}

/* ---- one session */

static const char *last_word(char *line, size_t size, int status)
{
    if (WIFEXITED(status))
        snprintf(line, size, "exited %d\n", WEXITSTATUS(status));
    else
        snprintf(line, size, "killed %d\n", WTERMSIG(status));
    return line;
}

static void tell(int gateway, const char *line)
{
    (void)!send(gateway, line, strlen(line), MSG_NOSIGNAL);
}

/* Receives the two descriptors; false where the gateway only looked whether somebody listens. */
static bool receive_request(int gateway, int descriptors[2])
{
    char byte = 0, room[CMSG_SPACE(2 * sizeof(int))];
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct pollfd ready = {.fd = gateway, .events = POLLIN};
    if (poll(&ready, 1, REQUEST_MS) <= 0)
        return false;
    if (recvmsg(gateway, &message, MSG_CMSG_CLOEXEC) != 1 || byte != 'S' || (message.msg_flags & MSG_CTRUNC))
        return false;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
        head->cmsg_len != CMSG_LEN(2 * sizeof(int)))
        return false;
    memcpy(descriptors, CMSG_DATA(head), 2 * sizeof(int));
    return true;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    (void)remove(path);
    return 0;
}

/* Becomes the server; an error is written to `problem`, which a successful exec closes. */
static void become_server(char **command, const char *home, const int descriptors[2], int problem)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, &original_mask, NULL);
    if (dup2(descriptors[0], 0) >= 0 && dup2(descriptors[1], 1) >= 0 && setenv("HOME", home, 1) == 0)
        execvp(command[0], command);
    int error = errno;
    (void)!write(problem, &error, sizeof error);
    _exit(NOT_FOUND);
}

/* Passes signals on until the server has exited; returns its status. The process group ends with it. */
static int supervise(int gateway, int signals, pid_t server, bool *asked)
{
    struct pollfd events[] = {{.fd = gateway, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    int timeout = -1;
    for (;;) {
        siginfo_t exited = {0};
        if (waitid(P_PID, server, &exited, WEXITED | WNOHANG | WNOWAIT) == 0 && exited.si_pid == server)
            break;
        int ready = poll(events, 2, timeout);
        if (ready == 0)
            kill(-server, SIGKILL);
        if (events[0].revents) {
            char order = 'K';
            ssize_t got = recv(gateway, &order, 1, MSG_DONTWAIT);
            *asked = true;
            kill(-server, got == 1 && order == 'T' ? SIGTERM : SIGKILL);
            if (got <= 0)
                events[0].fd = -1;
        }
        struct signalfd_siginfo signal;
        if (events[1].revents && read(signals, &signal, sizeof signal) == sizeof signal &&
            signal.ssi_signo == SIGTERM) {
            *asked = true;
            kill(-server, SIGTERM);
            timeout = PATIENCE_MS;
        }
    }
    kill(-server, SIGKILL); /* before the server is reaped: its number is not another's yet */
    int status = 0;
    waitpid(server, &status, 0);
    return status;
}

static void serve_session(int gateway, int signals, char **command)
{
    int descriptors[2], problem[2], error = 0;
    char home[] = "/tmp/tarsy-home-XXXXXX", line[128];
    if (!receive_request(gateway, descriptors))
        return;
    if (!mkdtemp(home) || pipe2(problem, O_CLOEXEC) < 0) {
        snprintf(line, sizeof line, "failed cannot make a folder in /tmp: %s\n", strerror(errno));
        tell(gateway, line);
        return;
    }
    pid_t server = fork();
    if (server == 0)
        become_server(command, home, descriptors, problem[1]);
    close(problem[1]);
    close(descriptors[0]);
    close(descriptors[1]);
    if (server < 0) {
        snprintf(line, sizeof line, "failed cannot start a process: %s\n", strerror(errno));
        tell(gateway, line);
    } else {
        setpgid(server, server); /* here and there, so that it holds whichever comes first */
        bool asked = false, never = read(problem[0], &error, sizeof error) == sizeof error;
        if (never)
            snprintf(line, sizeof line, "failed the program cannot be started: %s\n", strerror(error));
        tell(gateway, never ? line : "started\n");
        int status = supervise(gateway, signals, server, &asked);
        if (!never) {
            tell(gateway, last_word(line, sizeof line, status));
            if (!asked && status != 0)
                say("the server has ended by itself: %.*s", (int)strcspn(line, "\n"), line);
        }
    }
    nftw(home, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* ---- the container's first process */

static bool found(const char *program)
{
    if (strchr(program, '/'))
        return access(program, X_OK) == 0;
    const char *path = getenv("PATH");
    char *paths = strdup(path ? path : "/usr/local/bin:/usr/bin:/bin"), *rest = paths, *folder, candidate[4096];
    bool there = false;
    while (!there && (folder = strsep(&rest, ":")))
        there = snprintf(candidate, sizeof candidate, "%s/%s", *folder ? folder : ".", program) <
                    (int)sizeof candidate && access(candidate, X_OK) == 0;
    free(paths);
    return there;
}

static int listen_on(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        fail(2, "the path of the socket has more than %zu characters: %s", sizeof address.sun_path - 1, path);
    strcpy(address.sun_path, path);
    unlink(path); /* of a container that was restarted */
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    umask(0177);
    if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof address) < 0 || listen(listening, 64) < 0)
        fail(1, "cannot listen on %s: %s", path, strerror(errno));
    umask(022);
    return listening;
}

static bool is_ours(int gateway)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(gateway, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

static void accept_session(int listening, int signals, char **command)
{
    int gateway = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    if (gateway < 0)
        return;
    if (!is_ours(gateway))
        say("a connection of another user was refused: both containers must run as the same user");
    else if (fork() == 0) {
        close(listening);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        serve_session(gateway, signals, command);
        _exit(0);
    }
    close(gateway);
}

/* Ends with all sessions: the supervisors, which are of this process group, get SIGTERM and are waited for. */
static int end_all(void)
{
    struct timespec tick = {.tv_nsec = 20 * 1000 * 1000};
    kill(0, SIGTERM);
    for (int waited = 0; waited < 2 * PATIENCE_MS; waited += 20) {
        pid_t ended;
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (ended < 0)
            return 0;
        nanosleep(&tick, NULL);
    }
    return 0;
}

static int run(const char *path, char **command)
{
    if (!found(command[0]))
        fail(NOT_FOUND, "the program '%s' was not found; is it in this image, and on its PATH?", command[0]);
    sigset_t handled;
    sigemptyset(&handled);
    sigaddset(&handled, SIGCHLD);
    sigaddset(&handled, SIGTERM);
    sigaddset(&handled, SIGINT);
    sigprocmask(SIG_BLOCK, &handled, &original_mask);
    int signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK), listening = listen_on(path);
    if (signals < 0)
        fail(1, "cannot receive signals: %s", strerror(errno));
    setpgid(0, 0); /* refused to the leader of a session, which leads its group already */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    struct pollfd events[] = {{.fd = listening, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    for (;;) {
        poll(events, 2, -1);
        struct signalfd_siginfo signal;
        while (read(signals, &signal, sizeof signal) == sizeof signal)
            if (signal.ssi_signo != SIGCHLD)
                return end_all();
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (events[0].revents)
            accept_session(listening, signals, command);
    }
}

int main(int count, char **arguments)
{
    if (count == 3 && !strcmp(arguments[1], "--install"))
        return install(arguments[2]);
    if (count >= 5 && !strcmp(arguments[1], "--socket") && !strcmp(arguments[3], "--"))
        return run(arguments[2], arguments + 4);
    fail(2, "usage: " PROGRAM " --install DIRECTORY | --socket PATH -- COMMAND [ARGUMENT...]");
}
