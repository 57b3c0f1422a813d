package neaptest

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // EVALSHA names a script by its SHA-1.
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/alicebob/miniredis/v2"
	redisserver "github.com/alicebob/miniredis/v2/server"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

// server is a miniredis that can be full, lose replies, and tell which scripts it was asked to run.
type server struct {
	*miniredis.Miniredis

	commands *redisserver.Server
	full     atomic.Bool

	running sync.Mutex  // held while a script or transaction runs: one at a time, as on any Redis
	closed  bool        // under running
	refuses atomic.Bool // whether it refuses the running script's first write

	mu     sync.Mutex
	peers  map[*redisserver.Peer]struct{} // connections
	losing []string                       // names, or their beginnings, of scripts whose next reply is lost
	asked  []string                       // names of neap's scripts, "" for others
}

func newServer() *server {
	s := &server{Miniredis: miniredis.NewMiniRedis(), peers: map[*redisserver.Peer]struct{}{}}
	s.ClockTTL(true)
	if conn, err := s.Dial(); err == nil { // which starts it
		_ = conn.Close()
	}
	s.commands = s.Server()
	s.commands.SetPreHook(s.hook)
	return s
}

// successor returns a server without the data, in the same scenes.
func (s *server) successor() *server {
	next := newServer()
	next.full.Store(s.full.Load())
	s.mu.Lock()
	defer s.mu.Unlock()
	next.losing = slices.Clone(s.losing)
	return next
}

// end closes the server when no script runs: miniredis panics if one does.
func (s *server) end() {
	s.running.Lock()
	s.closed = true
	s.running.Unlock()
	s.Close()
}

// hook is called before each command, also before those that a script calls. It returns true if the command is done.
func (s *server) hook(c *redisserver.Peer, command string, args ...string) bool {
	switch {
	case !s.connected(c):
		return s.called(c, command)
	case (command == "EVALSHA" || command == "EVAL") && len(args) > 0, command == "EXEC":
		s.run(c, command, args)
		return true
	case s.full.Load() && slices.Contains(growing, command):
		c.WriteError(errFull)
		return true
	}
	return false
}

// connected reports whether a peer is a connection. Its first command finds no context; the peers by
// which run and scripts call have one from the beginning.
func (s *server) connected(c *redisserver.Peer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Ctx == nil {
		s.peers[c] = struct{}{}
	}
	_, is := s.peers[c]
	return is
}

// called is the hook of a command that a script calls.
func (s *server) called(c *redisserver.Peer, command string) bool {
	grows := slices.Contains(growing, command)
	if grows && s.refuses.Load() {
		c.WriteError(errFull)
		return true
	}
	if grows || slices.Contains(writing, command) {
		s.refuses.Store(false)
	}
	return false
}

// run runs a script or a transaction, and writes its reply unless that is lost.
func (s *server) run(c *redisserver.Peer, command string, args []string) {
	s.running.Lock()
	defer s.running.Unlock()
	if s.closed {
		c.Close()
		return
	}
	var reply bytes.Buffer
	peer := redisserver.NewPeer(bufio.NewWriter(&reply))
	peer.Ctx, peer.Resp3 = c.Ctx, c.Resp3
	sha := shaOf(command, args)
	name := nameOf(sha)
	s.refuses.Store(s.full.Load())
	s.mu.Lock()
	s.asked = append(s.asked, name)
	s.mu.Unlock()
	s.commands.Dispatch(peer, append([]string{command}, args...))
	peer.Flush()
	s.refuses.Store(false)
	if ran := sha != "" && !bytes.HasPrefix(reply.Bytes(), []byte("-NOSCRIPT")); ran && s.loses(name) {
		c.Close() // before there is anything to read
		return
	}
	c.WriteRaw(raised.ReplaceAllString(reply.String(), fmt.Sprintf("-$2 script: %s, on @user_script:$1.\r\n", sha)))
}

// shaOf is the SHA of the script that a command runs, "" if it runs none.
func shaOf(command string, args []string) string {
	switch command {
	case "EVALSHA":
		return args[0]
	case "EVAL":
		sum := sha1.Sum([]byte(args[0])) //nolint:gosec // as above
		return hex.EncodeToString(sum[:])
	}
	return ""
}

// errFull is what a full Redis says, outside of a script.
const errFull = "OOM command not allowed when used memory > 'maxmemory'."

// raised matches what miniredis replies if a command in a script was refused.
var raised = regexp.MustCompile(`(?s)^-ERR Error compiling script \(new function\): (?:<string>)?:(\d+): (OOM [^\n]*?'maxmemory'\.).*$`)

func (s *server) loseReply(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.losing = append(s.losing, name)
}

func (s *server) keepReplies() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.losing = nil
}

// loses reports whether the reply of a script is to be lost, and counts it.
func (s *server) loses(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.losing, func(begins string) bool { return strings.HasPrefix(name, begins) })
	if i < 0 {
		return false
	}
	s.losing = slices.Delete(s.losing, i, i+1)
	return true
}

// take returns the names of the scripts that were asked for since it was called last.
func (s *server) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// nameOf returns the name of a script of neap by its SHA; "" if it is none.
func nameOf(sha string) string {
	if name, is := names()[sha]; is {
		return name
	}
	for _, j := range lua.Made() {
		own, is := joined.Load(j.Name)
		if !is {
			own, _ = joined.LoadOrStore(j.Name, script.New(j.Name, j.Text).SHA())
		}
		if own == sha {
			return j.Name
		}
	}
	return ""
}

// joined has the SHAs of the scripts of limits that were made, by their names.
var joined sync.Map

// names are the names of neap's scripts that are files, by their SHA.
var names = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	files, err := fs.Glob(lua.FS, "*.lua")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		s := script.FromFS(lua.FS, file)
		all[s.SHA()] = s.Name()
	}
	return all
})
