//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// forwarded are the signals that go on to the command. Each would otherwise end neap.
var forwarded = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}

// group gives the command a process group of its own, so that signals reach all that it begins. If neap may read from the
// terminal, so may the command. Neither heeds a stop by the terminal: a command that is stopped would hold the lock for
// ever, and one whose neap is stopped would run on without it. In the background a read of the terminal is an error then.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endOrphan(cmd.SysProcAttr)
	if tty, is := terminal(cmd); is {
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, tty
	}
	signal.Ignore(syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU) // the command inherits it
}

// terminal is the terminal that the command reads from, if neap is in its foreground.
func terminal(cmd *exec.Cmd) (fd int, is bool) {
	file, isFile := cmd.Stdin.(*os.File)
	if !isFile {
		return 0, false
	}
	fd = int(file.Fd())
	front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return fd, err == nil && front == unix.Getpgrp()
}

// takeBack makes neap's group that of the terminal again, for what a script does next.
func takeBack(cmd *exec.Cmd) {
	if cmd.SysProcAttr.Foreground {
		_ = unix.IoctlSetPointerInt(cmd.SysProcAttr.Ctty, unix.TIOCSPGRP, unix.Getpgrp())
	}
}

func toGroup(cmd *exec.Cmd, s syscall.Signal) error { return syscall.Kill(-cmd.Process.Pid, s) }

func forward(cmd *exec.Cmd, s os.Signal) (err error) {
	if s, is := s.(syscall.Signal); is {
		err = toGroup(cmd, s)
	}
	return err
}

// terminate also wakes what is stopped, so that it can heed the signal.
func terminate(cmd *exec.Cmd) error {
	err := toGroup(cmd, syscall.SIGTERM)
	_ = toGroup(cmd, syscall.SIGCONT)
	return err
}

func destroy(cmd *exec.Cmd) { _ = toGroup(cmd, syscall.SIGKILL) }

// remains says whether there is still a process of the command's group.
func remains(cmd *exec.Cmd) bool { return toGroup(cmd, 0) == nil }

// exitOf is the exit status of a command as a shell has it.
func exitOf(state *os.ProcessState) int {
	if status, is := state.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return state.ExitCode()
}
