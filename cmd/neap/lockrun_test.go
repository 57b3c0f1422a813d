//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
)

// job is a process that runs a shell's script under a lock. The script finds the files of the test in its directory.
type job struct {
	*exec.Cmd

	dir       string
	out, errs bytes.Buffer
	ended     chan struct{}
}

// startJob starts neap lock run with these words, and then -- and the script. A script that goes on until it is ended looks
// for a file of its directory, so that a test that fails leaves none behind.
func startJob(t *testing.T, p place, dir, script string, words ...string) *job {
	t.Helper()
	return startProcess(t, dir, slices.Concat([]string{os.Args[0], "lock", "run"}, p.flags, words, []string{"--", "sh", "-c", script}))
}

// startProcess starts a command that neap is, or begins, after changes to it.
func startProcess(t *testing.T, dir string, command []string, changes ...func(*exec.Cmd)) *job {
	t.Helper()
	j := &job{Cmd: exec.Command(command[0], command[1:]...), dir: dir, ended: make(chan struct{})}
	j.Dir, j.Stdout, j.Stderr = dir, &j.out, &j.errs
	j.Env = append(os.Environ(), asCommand+"=1")
	j.WaitDelay = time.Second // what a script leaves behind may keep its output open
	for _, change := range changes {
		change(j.Cmd)
	}
	must(t, j.Start())
	go func() {
		defer close(j.ended)
		_ = j.Wait()
	}()
	t.Cleanup(func() {
		_ = j.Process.Kill()
		<-j.ended
	})
	return j
}

// wants waits for the end, and fails the test unless it ended so.
func (j *job) wants(t *testing.T, code int, texts ...string) {
	t.Helper()
	select {
	case <-j.ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("the job has not ended")
	}
	said{j.ProcessState.ExitCode(), j.out.String(), j.errs.String()}.wants(t, code, texts...)
}

func (j *job) runs() bool {
	select {
	case <-j.ended:
		return false
	default:
		return true
	}
}

func (j *job) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	must(t, j.Process.Signal(s))
}

// text is what a file of the job has; nothing if it is not there.
func (j *job) text(name string) string {
	text, _ := os.ReadFile(filepath.Join(j.dir, name))
	return string(text)
}

func (j *job) await(t *testing.T, name, text string) {
	t.Helper()
	redistest.Await(t, time.Minute, name+" to have "+text, func() bool { return strings.Contains(j.text(name), text) })
}

// gone waits until there is no process of an id that a file has.
func (j *job) gone(t *testing.T, name string) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(j.text(name)))
	must(t, err)
	redistest.Await(t, time.Minute, "the process of "+name+" to be gone", func() bool {
		state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || err == nil && strings.Contains(string(state), ") Z ")
	})
}

func jobsLocker(t *testing.T, p place) *lock.Locker {
	t.Helper()
	locker, err := lock.New(p.store, "jobs", nil)
	must(t, err)
	return locker
}

// lockRunArgs are a command line with the flags of the place before the dashes.
func lockRunArgs(p place, words ...string) []string {
	return slices.Concat([]string{"lock", "run"}, p.flags, words)
}

// TestLockRun has commands that end in each way. What is printed is the command's, and the lock is free afterwards.
func TestLockRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	each(t, func(t *testing.T, p place) {
		for _, c := range []struct {
			code    int
			command []string
		}{
			{0, []string{"true"}}, {7, []string{"sh", "-c", "exit 7"}}, {255, []string{"sh", "-c", "exit 255"}}, {137, []string{"sh", "-c", "kill -9 $$"}},
			{exitNoCommand, []string{"no-such-command"}}, {exitNoCommand, []string{dir + "/none"}}, {exitNoCommand, []string{file("script", "#!/no/such/shell\n", 0o700)}},
			{exitNotExecutable, []string{dir}}, {exitNotExecutable, []string{file("plain", "echo", 0o600)}}, {exitNotExecutable, []string{file("garbage", "\x00\x01", 0o700)}},
		} {
			got := neap(t, lockRunArgs(p, slices.Concat([]string{"jobs", "nightly", "--json", "--"}, c.command)...)...)
			got.wants(t, c.code)
			if said := got.errs != ""; got.out != "" || said != (c.code == exitNoCommand || c.code == exitNotExecutable) {
				t.Errorf("%q: got %q and %q, want nothing of neap's, except why a command cannot be run", c.command, got.out, got.errs)
			}
			if s, err := jobsLocker(t, p).Inspect(t.Context(), "nightly"); err != nil || s.Held {
				t.Fatalf("%q: got %+v, %v, want the lock free", c.command, s, err)
			}
		}
		before, err := jobsLocker(t, p).Inspect(t.Context(), "nightly")
		must(t, err)
		got := answering(t, "typed", lockRunArgs(p, "jobs", "nightly", "--", "sh", "-c", `cat; echo " $NEAP_FENCE $1" --url; echo wrong >&2`, "sh", "--json")...)
		after, err := jobsLocker(t, p).Inspect(t.Context(), "nightly")
		must(t, err)
		if want := (said{0, "typed " + strconv.FormatInt(after.Fence, 10) + " --json --url\n", "wrong\n"}); got != want || after.Fence <= before.Fence {
			t.Errorf("got %+v, want %+v, and a fence above %d", got, want, before.Fence)
		}
	})
}

// TestLockRunShowsItsHolder: operators see the host, and the key is 'all' or what they wrote.
func TestLockRunShowsItsHolder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		host, _ := os.Hostname()
		dir := t.TempDir()
		j := startJob(t, p, dir, "echo up >up; while [ -e up ] && [ ! -e end ]; do sleep 0.02; done", "jobs")
		named := startJob(t, p, t.TempDir(), "echo up >up; sleep 1000", "jobs", "param:id=17")
		j.await(t, "up", "up")
		named.await(t, "up", "up")
		neap(t, p.with("lock", "show", "jobs", "all")...).wants(t, exitFound, host+"."+strconv.Itoa(j.Process.Pid)+".", "1 ")
		neap(t, p.with("lock", "show", "jobs", "param:id=17")...).wants(t, exitFound, "."+strconv.Itoa(named.Process.Pid)+".")
		writeFile(t, filepath.Join(dir, "end"), "")
		j.wants(t, exitFound)
		neap(t, p.with("lock", "show", "jobs", "all")...).wants(t, exitNot, "all is free.")
	})
}

// TestLockRunWrongly has command lines that are wrong, a Redis that is away, and one that refuses. No command runs.
func TestLockRunWrongly(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), nil)
	made := filepath.Join(t.TempDir(), "made")
	run := []string{"--", "touch", made}
	nothing := redistest.NewUser(t, "-@all", srv)
	for _, words := range [][]string{
		{"jobs", "nightly"}, {"jobs", "nightly", "--"}, {"jobs", "nightly", "--json", "--"}, slices.Concat([]string{"jobs", "203.0.113.7"}, run), slices.Concat([]string{"a b"}, run), slices.Concat([]string{"jobs", "--unknown"}, run),
		slices.Concat([]string{"jobs", "--lease", "999ms"}, run), slices.Concat([]string{"jobs", "--lease", "25h"}, run), slices.Concat([]string{"jobs", "--grace", "16s"}, run), slices.Concat([]string{"jobs", "--wait", "-1s"}, run),
		slices.Concat([]string{"jobs", "--at-least", "25h"}, run), slices.Concat([]string{"jobs", "-E", "256"}, run), slices.Concat([]string{"jobs", "--wait", "soon", "--json"}, run),
		slices.Concat([]string{"jobs", "--url", "redis://127.0.0.1:1", "--json"}, run),
		slices.Concat([]string{"jobs", "--url", "redis://" + nothing + ":" + redistest.Password + "@" + srv.Addr()}, run),
	} {
		got := neap(t, lockRunArgs(p, words...)...)
		got.wants(t, exitNotRun, "neap: ")
		if got.out != "" {
			t.Errorf("%q: got %q on standard output, want nothing", words, got.out)
		}
	}
	neap(t, slices.Concat([]string{"lock", "run", "jobs"}, run)...).wants(t, exitNotRun, "REDIS_URL")
	for _, words := range [][]string{{"--timeout", "soon", "lock", "run"}, {"--unknown", "lock", "run"}, {"lock", "--unknown", "run"}} {
		neap(t, slices.Concat(words, []string{"jobs", "nightly"}, run)...).wants(t, exitNotRun, "neap: ")
	}
	senseless := "redis://" + hostile(t, "cluster", "*9223372036854775807\r\n")
	neap(t, slices.Concat([]string{"lock", "run", "jobs", "nightly", "--url", senseless}, run)...).wants(t, exitNotRun, "makes no sense")
	if _, err := os.Stat(made); err == nil {
		t.Error("a command was run")
	}
	neap(t, "__complete", "--", "lock", "run", "jobs", "--", "-").wants(t, 0)
	if got := neap(t, "__complete", "--", "lock", "run", "jobs", "--", "-"); got.out != "" {
		t.Errorf("after the dashes: got %q, want nothing of neap's", got.out)
	}
}

// TestLockRunOfAHeldLock does not run, waits for as long as it should, or is interrupted.
func TestLockRunOfAHeldLock(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), nil)
	held, err := jobsLocker(t, p).Acquire(t.Context(), "nightly")
	must(t, err)
	defer held.Release(context.WithoutCancel(t.Context()))
	for _, c := range []struct {
		code  int
		words []string
	}{{exitHeld, nil}, {exitHeld, []string{"--wait", "50ms"}}, {0, []string{"-E", "0"}}, {75, []string{"--conflict-exit-code", "75"}}} {
		got := neap(t, lockRunArgs(p, slices.Concat([]string{"jobs", "nightly"}, c.words, []string{"--", "echo", "ran"})...)...)
		if got != (said{code: c.code}) {
			t.Errorf("%q: got %+v, want the status %d and nothing said", c.words, got, c.code)
		}
	}
	waits := startJob(t, p, t.TempDir(), "echo ran", "jobs", "nightly", "--wait", "10m")
	stopped := startJob(t, p, t.TempDir(), "echo ran", "jobs", "nightly", "--wait", "10m")
	admin, record := srv.Admin(t), p.flags[3]+":lock:jobs:{nightly}"
	redistest.Await(t, time.Minute, "both to stand in line", func() bool {
		return len(strings.Fields(admin.HGet(t.Context(), record, "wake").Val())) == 5 // a command, and two words for each
	})
	stopped.signal(t, syscall.SIGTERM)
	stopped.wants(t, exitNotRun, "neap: interrupted: the command was not run")
	must(t, held.Release(t.Context()))
	waits.wants(t, 0, "ran")
}

// TestLockRunPassesSignalsOn: the command decides what they do, and the lock is held until it ends.
func TestLockRunPassesSignalsOn(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), nil)
	script := `for s in HUP INT QUIT USR1 USR2; do trap "echo $s >>got" $s; done
		trap 'echo TERM >>got; while [ -e up ] && [ ! -e end ]; do sleep 0.02; done; exit 3' TERM
		echo up >up; while [ -e up ]; do sleep 0.02; done`
	dir := t.TempDir()
	j := startJob(t, p, dir, script, "jobs", "nightly")
	j.await(t, "up", "up")
	for name, s := range map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2} {
		if signal.Ignored(s) { // as under nohup: then the command ignores it, too
			continue
		}
		j.signal(t, s)
		j.await(t, "got", name)
	}
	j.signal(t, syscall.SIGTERM)
	j.await(t, "got", "TERM")
	neap(t, p.with("lock", "show", "jobs", "nightly")...).wants(t, exitFound)
	writeFile(t, filepath.Join(dir, "end"), "")
	j.wants(t, 3)
	neap(t, p.with("lock", "show", "jobs", "nightly")...).wants(t, exitNot, "is free")

	j = startJob(t, p, t.TempDir(), `echo $$ >pid; sleep 1000 & echo $! >child; echo up >up; wait`, "jobs", "nightly")
	j.await(t, "up", "up")
	j.signal(t, syscall.SIGTERM)
	j.wants(t, exitSignal+int(syscall.SIGTERM))
	j.gone(t, "child")
}

// TestLockRunLeavesAnIgnoredInterruptAlone: a job in the background of a script, which ignores it, outlives a Ctrl-C.
func TestLockRunLeavesAnIgnoredInterruptAlone(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), nil)
	script := `trap 'echo USR1 >got' USR1; kill -INT $$; echo up >up; while [ -e up ] && [ ! -e got ]; do sleep 0.02; done; exit 3`
	j := startProcess(t, t.TempDir(), slices.Concat([]string{"sh", "-c", `trap '' INT; exec "$@"`, "sh", os.Args[0]}, lockRunArgs(p, "jobs", "nightly", "--", "sh", "-c", script)))
	redistest.Await(t, time.Minute, "the command to run", func() bool { return j.text("up") != "" || !j.runs() })
	j.signal(t, syscall.SIGINT)
	j.signal(t, syscall.SIGUSR1)
	j.wants(t, 3)
}

// TestLockRunIsNotStopped by a terminal: neither neap, whose input is none here, nor the command.
func TestLockRunIsNotStopped(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), nil)
	script := `for s in TSTP TTIN TTOU; do kill -$s $$; done; echo up >up; while [ -e up ] && [ ! -e end ]; do sleep 0.02; done; exit 3`
	dir := t.TempDir()
	words := slices.Concat([]string{os.Args[0]}, lockRunArgs(p, "jobs", "nightly", "--", "sh", "-c", script))
	j := startProcess(t, dir, words, func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // no stop reaches a group whose parents are of another session
	})
	j.await(t, "up", "up")
	for _, s := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU} {
		j.signal(t, s)
	}
	writeFile(t, filepath.Join(dir, "end"), "")
	j.wants(t, 3)
}

// TestLockRunLosesItsLock by an operator: the command may end as it likes, for the grace.
func TestLockRunLosesItsLock(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		polite := startJob(t, p, t.TempDir(), `trap 'sleep 0.1; echo bye >>bye; exit 0' TERM; echo up >up; while [ -e up ]; do sleep 0.02; done`, "jobs", "polite", "--lease", "12s", "--grace", "4s")
		stubborn := startJob(t, p, t.TempDir(), `trap '' TERM; echo up >up; (echo up >>up; while [ -e up ]; do sleep 0.02; done) & echo $! >child; while [ -e up ]; do sleep 0.02; done`, "jobs", "stubborn", "--lease", "12s")
		orphan := startJob(t, p, t.TempDir(), `(trap '' TERM; echo $$ >x; while [ -e x ]; do sleep 0.02; done) & echo $! >child; echo up >up; wait`, "jobs", "orphan", "--lease", "12s")
		for _, j := range []*job{polite, stubborn, orphan} {
			j.await(t, "up", "up\n")
		}
		for _, key := range []string{"polite", "stubborn", "orphan"} {
			neap(t, p.with("lock", "force", "jobs", key, "-y")...).wants(t, exitFound)
		}
		for _, j := range []*job{polite, stubborn, orphan} {
			j.wants(t, exitLost, "neap: the lock of jobs ", "is lost", "SIGTERM")
		}
		if got := polite.text("bye"); got != "bye\n" {
			t.Errorf("got %q, want one SIGTERM, and the time to say bye", got)
		}
		stubborn.gone(t, "child")
		orphan.gone(t, "child")
	})
}

// TestLockRunSaysThatASignalIsRefused, and nothing of a command that is gone.
func TestLockRunSaysThatASignalIsRefused(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	k := &keeper{lockRun: &lockRun{}, app: &app{system: system{errs: &errs}}, what: "jobs nightly", cmd: exec.Command("true")}
	must(t, k.cmd.Run()) // in a group of the test, so there is none of its own
	k.judge(terminate(k.cmd))
	k.judge(forward(k.cmd, syscall.SIGHUP))
	if k.heard(); errs.Len() > 0 {
		t.Errorf("of a command that is gone: got %q, want nothing said", errs.String())
	}
	k.judge(syscall.EPERM)
	k.heard()
	said{0, "", errs.String()}.wants(t, 0, "neap: the command of jobs nightly gets no signal of neap: operation not permitted; run neap itself")
}

// TestLockRunWhoseErrorsNobodyReads: the standard error is a pipe whose other end is closed, or that is full. The command
// ends all the same, and so does neap.
func TestLockRunWhoseErrorsNobodyReads(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), nil)
	script := `trap '' TERM; echo up >up; (while [ -e up ]; do sleep 0.02; done) & echo $! >child; echo up >>up; while [ -e up ]; do sleep 0.02; done`
	for _, key := range []string{"closed", "full"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			reader, errs, err := os.Pipe()
			must(t, err)
			t.Cleanup(func() {
				_ = reader.Close()
				_ = errs.Close()
			})
			if key == "closed" {
				must(t, reader.Close())
			} else {
				must(t, errs.SetWriteDeadline(time.Now().Add(2*time.Second)))
				if n, err := errs.Write(make([]byte, 4<<20)); n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("got %d bytes written and %v, want the pipe full", n, err)
				}
			}
			words := slices.Concat([]string{os.Args[0]}, lockRunArgs(p, "jobs", key, "--lease", "12s", "--", "sh", "-c", script))
			j := startProcess(t, t.TempDir(), words, func(cmd *exec.Cmd) { cmd.Stderr = errs })
			j.await(t, "up", "up\n"+"up")
			neap(t, p.with("lock", "force", "jobs", key, "-y")...).wants(t, exitFound)
			j.wants(t, exitLost)
			j.gone(t, "child")
		})
	}
}

// TestLockRunWithoutRedis kills Redis while a command runs that ignores SIGTERM. It is gone before the lease can be over.
func TestLockRunWithoutRedis(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	stood := redistest.Witness(t)
	srv := redistest.NewStandalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), "neap", nil)
	script := `trap 'echo TERM >>term' TERM; echo $$ >pid; while [ -e pid ]; do date +%s%N >beat.new; mv beat.new beat; sleep 0.02; done`
	j := startJob(t, p, t.TempDir(), script, "jobs", "nightly", "--lease", lease.String(), "--timeout", "1s")
	j.await(t, "beat", "1")
	srv.Stop(t)
	last := time.Now().Add(lease)
	j.wants(t, exitLost, "is lost: Redis does not confirm it")
	beat, err := strconv.ParseInt(strings.TrimSpace(j.text("beat")), 10, 64)
	must(t, err)
	if at := time.Unix(0, beat); at.After(last.Add(4 * stood())) {
		t.Errorf("the command still ran %v after the end of the lease", at.Sub(last))
	}
	if j.text("term") == "" {
		t.Error("the command got no SIGTERM before the SIGKILL")
	}
	j.gone(t, "pid")
	srv.Start(t)
	neap(t, lockRunArgs(p, "jobs", "nightly", "--wait", "1m", "--", "true")...).wants(t, 0)
}

// TestALateEndIsWithinTheLease: if most of the lease is over before the command has begun, its grace is what is left.
func TestALateEndIsWithinTheLease(t *testing.T) {
	t.Parallel()
	stood := redistest.Witness(t)
	run := &lockRun{Lease: 10 * time.Second, Grace: 5 * time.Second}
	k := &keeper{lockRun: run, app: &app{system: system{errs: io.Discard}}, what: "jobs nightly"}
	k.cmd = exec.Command("sh", "-c", `trap '' TERM; echo up >up; while [ -e up ]; do sleep 0.02; done`)
	j := &job{Cmd: k.cmd, dir: t.TempDir()}
	k.cmd.Dir = j.dir
	must(t, k.start())
	j.await(t, "up", "up")
	since := time.Now().Add(-8 * time.Second)
	code := k.watch(since, nil, nil, nil)
	if took := time.Since(since); code != exitSignal+int(syscall.SIGKILL) || took > run.Lease+4*stood() {
		t.Errorf("got the status %d, %v after the beginning of a lease of %v, want the command killed before its end", code, took, run.Lease)
	}
	k.heard()
}

// TestLockRunOutlivesItsLease: the lock is renewed.
func TestLockRunOutlivesItsLease(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), nil)
	j := startJob(t, p, t.TempDir(), "echo up >up; sleep 8; echo end >up", "jobs", "nightly", "--lease", "6s", "--grace", "500ms")
	j.await(t, "up", "up")
	for running := true; running; {
		got := neap(t, lockRunArgs(p, "jobs", "nightly", "--", "true")...)
		if running = !strings.Contains(j.text("up"), "end"); running && got.code != exitHeld {
			t.Fatalf("got the status %d, want the lock held while the command runs", got.code)
		}
		<-time.After(100 * time.Millisecond)
	}
	j.wants(t, 0)
}

// TestLockRunOnSeveralMachines has processes that run at once: one after the other if they wait, and else one alone.
func TestLockRunOnSeveralMachines(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		dir := t.TempDir()
		var jobs []*job
		for range 5 {
			jobs = append(jobs, startJob(t, p, dir, `mkdir busy || echo overlap >>faults; echo $NEAP_FENCE >>fences; sleep 0.05; rmdir busy`, "jobs", "serial", "--wait", "2m"))
		}
		for _, j := range jobs {
			j.wants(t, 0)
		}
		fences := strings.Fields(jobs[0].text("fences"))
		if len(fences) != 5 || !slices.IsSorted(fences) || len(slices.Compact(fences)) != 5 || jobs[0].text("faults") != "" {
			t.Errorf("got the fences %q and %q, want five that grow, and no overlap", fences, jobs[0].text("faults"))
		}
		dir, jobs = t.TempDir(), nil
		for range 3 {
			jobs = append(jobs, startJob(t, p, dir, `echo ran >>ran`, "jobs", "cron", "--at-least", "20m"))
		}
		jobs[0].await(t, "ran", "ran")
		var codes []int
		redistest.Await(t, time.Minute, "two to end", func() bool {
			codes = nil
			for _, j := range jobs {
				if !j.runs() {
					codes = append(codes, j.ProcessState.ExitCode())
				}
			}
			return len(codes) == 2
		})
		if !slices.Equal(codes, []int{exitHeld, exitHeld}) || jobs[0].text("ran") != "ran\n" {
			t.Errorf("got %v and %q, want one that ran, and two that found the lock held", codes, jobs[0].text("ran"))
		}
		for _, j := range jobs { // the third keeps the lock until it is told to end
			if j.runs() {
				j.signal(t, syscall.SIGTERM)
				j.wants(t, 0)
			}
		}
		neap(t, p.with("lock", "show", "jobs", "cron")...).wants(t, exitNot, "is free")
	})
}

// TestLockRunIsKilled: Linux tells the command of the end of neap.
func TestLockRunIsKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems cannot")
	}
	srv := redistest.Standalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), nil)
	j := startJob(t, p, t.TempDir(), `trap 'echo TERM >term; exit' TERM; echo $$ >pid; while [ -e pid ]; do sleep 0.02; done`, "jobs", "nightly")
	j.await(t, "pid", "\n")
	must(t, j.Process.Kill())
	j.await(t, "term", "TERM")
	j.gone(t, "pid")
}
