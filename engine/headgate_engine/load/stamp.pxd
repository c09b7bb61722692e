# When the kernel got what a read brings, for a reader that sleeps meanwhile (SO_TIMESTAMPNS, socket(7)).

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #include <sys/socket.h>
    #include <sys/uio.h>
    #include <time.h>

    static int hg_stamp(int fd)
    {
        int on = 1;
        return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
    }

    static ssize_t hg_recv_stamped(int fd, void *data, size_t most, int64_t *wall_ns)
    {
        struct iovec into = {data, most};
        union { char bytes[CMSG_SPACE(sizeof(struct timespec))]; struct cmsghdr aligned; } control;
        struct msghdr message = {0};
        struct cmsghdr *one;
        struct timespec at;
        ssize_t found;
        message.msg_iov = &into;
        message.msg_iovlen = 1;
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        found = recvmsg(fd, &message, MSG_DONTWAIT);
        *wall_ns = 0;
        if (found <= 0)
            return found;
        for (one = CMSG_FIRSTHDR(&message); one != NULL; one = CMSG_NXTHDR(&message, one)) {
            if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SO_TIMESTAMPNS)
                continue;
            memcpy(&at, CMSG_DATA(one), sizeof(at));
            *wall_ns = (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
        }
        return found;
    }
    """
    # Has reads of a socket say when their last byte came; -1 with errno.
    int hg_stamp(int fd) nogil
    # recv(2) without waiting; `wall_ns` is when the last byte of it came, by the time of day; 0: that is not known.
    ssize_t hg_recv_stamped(int fd, void* data, size_t most, int64_t* wall_ns) nogil
