# Attempts to reach everything that a program in the browser's place must not reach. Writes one line
# per attempt:
# group, name, "reached" or "denied", separated by tabs. Uses no modules, since the sandbox does not
# contain them. The numbers of system calls are those of x86_64.
my %at = map { split /=/, $_, 2 } @ARGV;
# Numbers: `syscall` passes the address of a string.
$at{$_} += 0 for qw(victim service port);
my $results = "$at{own}/results.txt";
open(my $out, '>', $results) or die "cannot write $results: $!";
select((select($out), $| = 1)[0]);

# Each attempt runs in a child process, with a timeout of 5 s.
sub try {
    my ($group, $what, $attempt) = @_;
    my $child = fork();
    if (!defined $child) { print $out "$group\t$what\tbroken: fork: $!\n"; return }
    if ($child == 0) {
        alarm 5;
        my $reached = eval { $attempt->() };
        syscall(231, $reached ? 77 : 0);
    }
    waitpid($child, 0);
    my $reached = $? == 77 << 8;
    printf $out "%s\t%s\t%s\n", $group, $what, $reached ? 'reached' : 'denied';
}
sub reads { my ($path) = @_; open(my $file, '<', $path) or return 0; return defined(sysread($file, my $byte, 1)) }
sub holds { my ($path, $text) = @_; open(my $file, '<', $path) or return 0; local $/; my $all = <$file>; return index($all // '', $text) >= 0 }
sub lists { opendir(my $folder, $_[0]) or return 0; return scalar(grep { !/^\.\.?$/ } readdir $folder) }
sub opens { my ($path, $flags) = @_; return sysopen(my $file, $path, $flags) }
# Whether the kernel runs a system call: errors except EPERM, EACCES and ENOSYS come from the call itself.
sub calls { my ($number, @words) = (@_, (0) x (7 - @_)); $! = 0; my $answer = syscall($number, @words); return 1 if $answer >= 0; return !($! == 1 || $! == 13 || $! == 38) }
# The same, but only success counts.
sub works { my ($number, @words) = @_; my $answer = syscall($number, @words); return defined $answer && $answer >= 0 }
# Reversed in the arguments, since our own command line is in /proc too.
my $token = reverse $at{nekot};
my $text = "canary";
my $RDWR = 2; my $WRONLY = 1;

# Files
my $f = 'file';
try($f, 'a file that everybody may read', sub { holds("$at{base}/world.txt", $text) });
try($f, 'a 0600 file of the user that runs the service', sub { holds("$at{base}/own.txt", $text) });
try($f, 'recordings outside the data folder', sub { holds("$at{base}/recordings/film.mp4", $text) });
try($f, 'a file in /tmp', sub { holds($at{tmp}, $text) });
try($f, 'a file in /dev/shm', sub { holds($at{shm}, $text) });
try($f, 'the list of /var/tmp', sub { opendir(my $folder, '/var/tmp') or return 0; grep { !/^\.\.?$/ && "/var/tmp/$_" ne $at{base} } readdir $folder });
try($f, 'writing to /var/tmp', sub { opens("/var/tmp/probe-$$", $WRONLY | 0100) && unlink("/var/tmp/probe-$$") });
try($f, '/etc/passwd of the machine', sub { holds('/etc/passwd', 'daemon:') });
try($f, '/etc/group of the machine', sub { holds('/etc/group', 'daemon:') });
try($f, '/etc/shadow', sub { reads('/etc/shadow') });
try($f, '/etc/hostname', sub { reads('/etc/hostname') });
try($f, '/etc/resolv.conf', sub { reads('/etc/resolv.conf') });
try($f, '/etc/fstab', sub { reads('/etc/fstab') });
try($f, '/etc/machine-id', sub { reads('/etc/machine-id') });
try($f, '/etc/os-release', sub { reads('/etc/os-release') });
try($f, '/etc/environment', sub { opens('/etc/environment', 0) });
try($f, '/etc/profile', sub { reads('/etc/profile') });
try($f, '/etc/apt', sub { lists('/etc/apt') });
try($f, '/etc/cron.daily', sub { lists('/etc/cron.daily') });
try($f, '/etc/ssl/openssl.cnf', sub { reads('/etc/ssl/openssl.cnf') });
try($f, '/etc/ssl/private', sub { opens('/etc/ssl/private', 0200000) });
try($f, 'packages that are installed (/var/lib/dpkg)', sub { reads('/var/lib/dpkg/status') });
try($f, '/var/log', sub { lists('/var/log') });
try($f, '/var/cache', sub { lists('/var/cache') });
try($f, '/home', sub { opens('/home', 0200000) });
try($f, '/root', sub { opens('/root', 0200000) && lists('/root') });
try($f, '/srv', sub { opens('/srv', 0200000) });
try($f, '/opt', sub { opens('/opt', 0200000) });
try($f, '/mnt and /media', sub { opens('/mnt', 0200000) || opens('/media', 0200000) });
try($f, '/boot', sub { opens('/boot', 0200000) });
try($f, '/run', sub { lists('/run') });
try($f, '/usr/local', sub { opens('/usr/local/bin', 0200000) });
try($f, 'programs in /usr/bin', sub { lists('/usr/bin') });
try($f, 'a shell (/bin/sh)', sub { -x '/bin/sh' });
try($f, 'programs in /usr/sbin', sub { lists('/usr/sbin') });
try($f, '/usr/share/doc', sub { lists('/usr/share/doc') });
try($f, '/usr/include', sub { lists('/usr/include') });
try($f, 'python in /usr/lib', sub { lists('/usr/lib/python3') });
try($f, "the service's own program", sub { reads($at{helper}) });
try($f, 'writing beside the browser', sub { opens("$at{browser}/new", $WRONLY | 0100) });
try($f, 'writing to /', sub { opens('/new', $WRONLY | 0100) });
try($f, 'running a program that was written', sub { my $file = "$at{own}/run"; open(my $in, '<', "$at{browser}/sh") or return 0; local $/; my $all = <$in>; open(my $to, '>', $file) or return 0; print $to $all; close $to; chmod 0755, $file; return system($file, '-c', ':') == 0 });

# Processes
my $p = 'process';
try($p, 'command lines of other processes', sub { for my $one (glob '/proc/[0-9]*/cmdline') { return 1 if holds($one, $token) } 0 });
try($p, "another process's environment", sub { holds("/proc/$at{victim}/environ", $token) });
try($p, "another process's state", sub { reads("/proc/$at{victim}/status") });
try($p, "another process's open files", sub { lists("/proc/$at{victim}/fd") });
try($p, "another process's root", sub { lists("/proc/$at{victim}/root") });
try($p, "another process's memory", sub { opens("/proc/$at{victim}/mem", 0) });
try($p, "another process's mounts", sub { reads("/proc/$at{victim}/mountinfo") });
try($p, 'a signal to another process', sub { kill(0, $at{victim}) });
try($p, 'a signal to the test (the service)', sub { kill(0, $at{service}) });
try($p, 'ptrace of another process', sub { works(101, 16, $at{victim}, 0, 0) });
try($p, 'a pidfd of another process', sub { works(434, $at{victim}, 0) });
try($p, "another process's limits (prlimit)", sub { my $old = "\0" x 16; works(302, $at{victim}, 7, 0, $old) });
try($p, "another process's cores (sched_getaffinity)", sub { my $mask = "\0" x 128; works(203, $at{victim}, 128, $mask) });
try($p, "another process's session (getsid)", sub { works(124, $at{victim}) });
try($p, 'ptrace of a process of its own', sub { my $child = fork(); if (!$child) { sleep 3; syscall(231, 0) } my $done = works(101, 16, $child, 0, 0); kill 9, $child; $done });
try($p, 'memory of a process of its own (process_vm_readv)', sub { calls(310, $$, 0, 0, 0, 0, 0) });

# /proc and /sys
my $k = '/proc, /sys';
for my $file (qw(cmdline config.gz cpuinfo diskstats interrupts iomem kallsyms keys loadavg meminfo modules partitions stat swaps timer_list uptime version vmstat zoneinfo)) {
    try($k, "/proc/$file", sub { reads("/proc/$file") });
}
try($k, '/proc/kcore', sub { opens('/proc/kcore', 0) });
try($k, '/proc/kmsg', sub { opens('/proc/kmsg', 04000) });
try($k, '/proc/sysrq-trigger', sub { opens('/proc/sysrq-trigger', $WRONLY) });
try($k, '/proc/sys', sub { lists('/proc/sys') });
try($k, '/proc/sys/kernel/core_pattern, to write', sub { opens('/proc/sys/kernel/core_pattern', $WRONLY) });
try($k, "the service's control group (/proc/self/cgroup)", sub { open(my $file, '<', '/proc/self/cgroup') or return 0; grep { !m{:/$} } <$file> });
try($k, 'devices in /sys', sub { lists('/sys/devices') });
try($k, 'network interfaces in /sys', sub { lists('/sys/class/net') });
try($k, 'control groups in /sys/fs/cgroup', sub { lists('/sys/fs/cgroup') });
try($k, '/sys/kernel', sub { lists('/sys/kernel') });

# Devices
my $d = 'device';
for my $file (qw(console cpu_dma_latency fuse hpet input/event0 kmsg kvm loop-control loop0 mapper/control mem net/tun port ptmx rtc0 snd/timer tty tty0 uinput vda vhost-net vhost-vsock vsock)) {
    try($d, "/dev/$file", sub { -e "/dev/$file" });
}
try($d, 'terminals (/dev/pts)', sub { opens('/dev/pts', 0200000) });
try($d, 'queues of messages (/dev/mqueue)', sub { opens('/dev/mqueue', 0200000) });

# Sockets
my $s = 'socket';
sub connects { my ($family, $address) = @_; my $fd = syscall(41, $family, 1, 0); return 0 if $fd < 0; return syscall(42, $fd, $address, length $address) == 0 }
try($s, "a listener on the machine's loopback", sub { connects(2, pack('SnC4x8', 2, $at{port}, 127, 0, 0, 1)) });
try($s, 'an address outside', sub { connects(2, pack('SnC4x8', 2, 80, 1, 1, 1, 1)) });
try($s, 'a UNIX socket in a folder', sub { connects(1, pack('Sa108', 1, "$at{base}/socket")) });
try($s, 'an abstract UNIX socket', sub { connects(1, pack('S', 1) . "\0" . $token) });
try($s, 'D-Bus', sub { -e '/run/dbus/system_bus_socket' || -e '/var/run/dbus/system_bus_socket' });
my %families = (3 => 'AF_AX25', 5 => 'AF_APPLETALK', 15 => 'AF_KEY', 16 => 'AF_NETLINK', 17 => 'AF_PACKET', 21 => 'AF_RDS', 29 => 'AF_CAN', 30 => 'AF_TIPC', 31 => 'AF_BLUETOOTH', 38 => 'AF_ALG', 40 => 'AF_VSOCK', 44 => 'AF_XDP');
for my $family (sort { $a <=> $b } keys %families) {
    my $kind = $family == 17 || $family == 16 || $family == 44 ? 3 : $family == 38 ? 5 : 1;
    try($s, "$families{$family}", sub { works(41, $family, $kind, 0) });
}
try($s, 'AF_NETLINK, netfilter', sub { works(41, 16, 3, 12) });

# Kernel interfaces
my $i = 'kernel';
my $zero = "\0" x 256;
my $bpf = pack('LLLL', 1, 4, 4, 1) . "\0" x 112;
try($i, 'bpf', sub { calls(321, 0, $bpf, 128) });
try($i, 'io_uring_setup', sub { calls(425, 1, $zero) });
try($i, 'userfaultfd', sub { calls(323, 1) });
try($i, 'perf_event_open', sub { calls(298, pack('LL', 1, 128) . "\0" x 120, 0, -1, -1, 0) });
try($i, 'add_key', sub { calls(248, 'user', 'probe', 'x', 1, -3) });
try($i, 'keyctl', sub { calls(250, 0, -3, 1) });
try($i, 'request_key', sub { calls(249, 'user', 'probe', 0, -3) });
try($i, 'mount', sub { calls(165, 'none', $at{own}, 'tmpfs', 0, 0) });
try($i, 'umount2', sub { calls(166, '/proc', 2) });
try($i, 'pivot_root', sub { calls(155, $at{own}, $at{own}) });
try($i, 'fsopen', sub { calls(430, 'tmpfs', 0) });
try($i, 'open_tree', sub { calls(428, -100, '/', 1) });
try($i, 'a mount namespace in a user namespace', sub { works(272, 0x10020000) });
try($i, 'mount in a user namespace', sub { works(272, 0x10020000) && works(165, 'none', $at{own}, 'tmpfs', 0, 0) });
try($i, 'setns', sub { calls(308, 0, 0) });
try($i, 'sethostname in a user namespace', sub { works(272, 0x14000000) && works(170, 'x', 1) });
try($i, 'netfilter in a user namespace', sub { works(272, 0x50000000) && works(41, 16, 3, 12) });
try($i, 'open_by_handle_at', sub { calls(304, -100, $zero, 0) });
try($i, 'name_to_handle_at', sub { my ($handle, $id) = (pack('L', 128) . "\0" x 200, "\0" x 8); calls(303, -100, '/', $handle, $id, 0) });
try($i, 'init_module', sub { calls(175, $zero, 0, $zero) });
try($i, 'finit_module', sub { calls(313, -1, $zero, 0) });
try($i, 'kexec_load', sub { calls(246, 0, 0, 0, 0) });
try($i, 'reboot', sub { calls(169, 0, 0, 0, 0) });
try($i, 'swapon', sub { calls(167, '/nowhere', 0) });
try($i, 'acct', sub { calls(163, 0) });
try($i, 'quotactl', sub { calls(179, 0x800001, 0, 0, 0) });
try($i, 'syslog', sub { my $text = "\0" x 64; calls(103, 3, $text, 64) });
try($i, 'iopl', sub { calls(172, 3) });
try($i, 'ioperm', sub { calls(173, 0x80, 1, 1) });
try($i, 'modify_ldt', sub { my $table = "\0" x 64; calls(154, 0, $table, 64) });
try($i, 'personality', sub { calls(135, 0x0040000) });
try($i, 'clock_settime', sub { calls(227, 99, 0) });
try($i, 'adjtimex', sub { my $set = "\0" x 256; calls(159, $set) });
try($i, 'fanotify_init', sub { calls(300, 0x200, 0) });
try($i, 'kcmp', sub { calls(312, $$, $$, 1, 0, 0) });
try($i, 'process_madvise', sub { calls(440, -1, 0, 0, 0, 0) });
try($i, 'mknod of a device', sub { works(133, "$at{own}/device", 0020666, 0x103) });
try($i, 'System V shared memory', sub { calls(29, 0, 4096, 01600) });
try($i, 'POSIX queues of messages', sub { calls(240, 'probe', 0102, 0600, 0) });
try($i, 'vhangup', sub { calls(153) });
try($i, 'memfd_secret', sub { calls(447, 0) });
try($i, 'move_pages', sub { calls(279, $$, 0, 0, 0, 0, 0) });
try($i, 'lookup_dcookie', sub { calls(212, 0, 0, 0) });
try($i, 'TIOCSTI', sub { my $byte = 'x'; $! = 0; syscall(16, 1, 0x5412, $byte); $! != 1 && $! != 38 });
try($i, 'clone3 with namespaces', sub { calls(435, $zero, 1) });
try($i, '32-bit system calls (personality of i386)', sub { calls(135, 8) });

# Its own state
my $o = 'state';
sub own { my ($name) = @_; open(my $file, '<', '/proc/self/status') or return ''; for (<$file>) { return $1 if /^$name:\s*(\S+)/ } '' }
try($o, 'root, seen from outside or inside', sub { $< == 0 || $> == 0 });
try($o, 'new privileges by running a program', sub { own('NoNewPrivs') ne '1' });
try($o, 'a bounding set that is not empty', sub { own('CapBnd') =~ /[1-9a-f]/ });
try($o, 'capabilities', sub { own('CapEff') =~ /[1-9a-f]/ || own('CapPrm') =~ /[1-9a-f]/ || own('CapAmb') =~ /[1-9a-f]/ });
try($o, 'system calls without a filter', sub { own('Seccomp') ne '2' });
try($o, 'core dumps', sub { open(my $file, '<', '/proc/self/limits') or return 0; grep { /^Max core file size/ && !/^Max core file size\s+0\s+0/ } <$file> });
try($o, "the machine's host name", sub { my $name = "\0" x 390; syscall(63, $name); index($name, $at{host}) >= 0 });
try($o, 'more than three cores', sub { my $mask = "\0" x 128; my $length = syscall(204, 0, 128, $mask); unpack('%32b*', substr($mask, 0, $length)) > 3 });
# What Chromium needs, which must be reached.
my $c = 'permitted';
try($c, 'writing to its own folder', sub { opens("$at{own}/new", $WRONLY | 0100) });
try($c, 'writing to /tmp and /dev/shm of its own', sub { opens('/tmp/new', $WRONLY | 0100) && opens('/dev/shm/new', $WRONLY | 0100) });
try($c, 'its own program', sub { reads("$at{browser}/sh") });
try($c, 'fonts', sub { lists('/usr/share/fonts') });
try($c, '/dev/urandom', sub { reads('/dev/urandom') });
try($c, '/dev/null, to write', sub { opens('/dev/null', $WRONLY) });
try($c, 'its own processes in /proc', sub { reads("/proc/$$/status") });
try($c, 'running its own program', sub { system("$at{browser}/sh", '-c', ':') == 0 });
try($c, "the proxy's socket", sub { connects(2, pack('SnC4x8', 2, 3128, 127, 0, 0, 1)) });
try($c, 'user, PID and network namespaces, chroot', sub { works(272, 0x70000000) && chroot('/proc/self/fdinfo') });
close $out;
rename $results, "$at{own}/done.txt";
