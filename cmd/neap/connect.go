package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/store"
)

// app is one run of a command.
type app struct {
	options
	system

	model    *kong.Application
	command  []string    // what lock run runs
	raw      io.Writer   // standard output, without the sink that neap prints to
	keepOpen func() bool // has the clients stay open after an interrupt, unless that has come
	secrets  []string    // that no output may have
	spent    spending

	mu      sync.Mutex
	clients []redis.UniversalClient
	closed  bool
}

// keep closes a client when the command ends, or when it is interrupted.
func (a *app) keep(client redis.UniversalClient) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clients = append(a.clients, client)
	if a.closed {
		_ = client.Close()
	}
}

func (a *app) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, client := range a.clients {
		_ = client.Close()
	}
}

// hide takes passwords out of a text.
func (a *app) hide(text string) string {
	for _, secret := range a.secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

var login = regexp.MustCompile(`(?s)://.*@`)

// message is what an error says, without passwords and without a URL's login. It hides too much rather than too little: a
// password may have an @ that should be %40.
func (a *app) message(err error) string {
	text := a.hide(err.Error())
	if errors.Is(err, errURL) { // it shows how to write a login, and nothing of the command line
		return text
	}
	return login.ReplaceAllString(text, "://***@")
}

// keepArguments keeps the passwords of URLs wherever they are on the command line. An error may name an argument that is
// in the wrong place, or the part of it up to a comma or a space.
func (a *app) keepArguments(args []string) {
	keep := func(password string) {
		a.keepSecret(password)
		a.keepSecret(strings.FieldsFunc(password, func(c rune) bool { return c == ',' || unicode.IsSpace(c) })...)
	}
	for _, arg := range args {
		_, after, is := strings.Cut(arg, "://")
		if !is {
			continue
		}
		if end := strings.LastIndex(after, "@"); end >= 0 {
			_, password, _ := strings.Cut(after[:end], ":")
			keep(password)
		}
		_, query, _ := strings.Cut(after, "password=")
		password, _, _ := strings.Cut(query, "&")
		keep(password)
	}
}

var (
	errNoURL = usage(errors.New("there is no Redis to ask: give --url redis://host:port, or set REDIS_URL"))
	// What go-redis says of a URL may have a part of the password, so none of it is shown.
	errURL = usage(errors.New("--url is no URL that go-redis can read: write redis://user:password@host:port/db, and a password's /, @, :, ? and # as %2F, %40, %3A, %3F and %23"))
)

// connect makes the client that the URL asks for. A server that is a node of a cluster gets a cluster's client.
func (a *app) connect(ctx context.Context) (*fleet, error) {
	address := a.URL
	if address == "" {
		address = a.env("REDIS_URL")
	}
	if address == "" {
		return nil, errNoURL
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errURL
	}
	query := u.Query()
	inURL, _ := u.User.Password()
	a.keepSecret(inURL, query.Get("password"), a.env("REDISCLI_AUTH"))
	switch {
	case query.Has("master_name"):
		return a.sentinels(ctx, address)
	case query.Has("addr"):
		return a.cluster(address)
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, errURL
	}
	a.logIn(&o.Username, &o.Password)
	a.once(&o.ContextTimeoutEnabled, &o.MaxRetries, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout)
	single := redis.NewClient(o)
	a.keep(single)
	single.AddHook(&a.spent)
	if err := a.reach(ctx, single, o.Addr); err != nil {
		return nil, err
	}
	within, cancel := a.within(ctx)
	defer cancel()
	err = single.Do(within, "cluster", "slots").Err()
	if err != nil && !isReply(err) {
		return nil, unreachable(o.Addr, err)
	}
	if err != nil { // it is no cluster, or this user may not ask
		return &fleet{app: a, client: single}, nil
	}
	return a.manyNodes(&redis.ClusterOptions{
		Addrs: []string{o.Addr}, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig, Protocol: o.Protocol,
	}), nil
}

func (a *app) cluster(address string) (*fleet, error) {
	o, err := redis.ParseClusterURL(address)
	if err != nil {
		return nil, errURL
	}
	a.logIn(&o.Username, &o.Password)
	return a.manyNodes(o), nil
}

func (a *app) manyNodes(o *redis.ClusterOptions) *fleet {
	a.once(&o.ContextTimeoutEnabled, &o.MaxRetries, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout)
	client := redis.NewClusterClient(o)
	client.OnNewNode(func(node *redis.Client) { node.AddHook(&a.spent) })
	a.keep(client)
	return &fleet{app: a, client: client}
}

// sentinels connects through sentinels. The URL has their user and password, and its query has those of Redis.
func (a *app) sentinels(ctx context.Context, address string) (*fleet, error) {
	o, err := redis.ParseFailoverURL(address)
	if err != nil {
		return nil, errURL
	}
	a.logIn(&o.Username, &o.Password)
	a.once(&o.ContextTimeoutEnabled, &o.MaxRetries, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout)
	client := redis.NewFailoverClient(o)
	client.AddHook(&a.spent)
	a.keep(client)
	return &fleet{app: a, client: client}, a.reach(ctx, client, "the master "+o.MasterName+" of "+strings.Join(o.SentinelAddrs, ", "))
}

// once has a client try each command once, for as long as --timeout.
func (a *app) once(deadlines *bool, retries, dials *int, timeouts ...*time.Duration) {
	*deadlines, *retries, *dials = true, -1, 1
	for _, timeout := range timeouts {
		*timeout = a.Timeout
	}
}

// logIn takes the user that the command line names, and the password of the environment if the URL has none.
func (a *app) logIn(user, password *string) {
	if a.User != "" {
		*user = a.User
	}
	if own := a.env("REDISCLI_AUTH"); own != "" && (*password == "" || a.User != "") {
		*password = own
	}
}

func (a *app) keepSecret(all ...string) {
	for _, secret := range all {
		if secret != "" {
			quoted := strconv.Quote(secret)
			a.secrets = append(a.secrets, secret, url.QueryEscape(secret), url.PathEscape(secret), quoted[1:len(quoted)-1])
		}
	}
}

// within is a context for one call.
func (a *app) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, a.Timeout)
}

// open is the store that the service has, for tools: it accepts hashes as subjects, and logs nothing.
func (a *app) open(client redis.UniversalClient) (*store.Store, error) {
	o := &store.Options{
		Prefix: a.Prefix, Budget: a.Timeout, FirstContact: min(max(a.Timeout, time.Millisecond), time.Minute),
		StoredSubjects: true, Logger: slog.New(slog.DiscardHandler),
	}
	if a.Secret != "" {
		text, err := os.ReadFile(a.Secret)
		if err != nil {
			return nil, usagef("--secret-file: %w", err)
		}
		o.SubjectSecret = bytes.TrimRight(text, "\r\n")
	}
	st, err := store.Open(client, o)
	if err != nil {
		return nil, usage(err)
	}
	return st, nil
}

// begin connects, and opens the store.
func (a *app) begin(ctx context.Context) (*fleet, *store.Store, error) {
	if a.Timeout < time.Millisecond || a.Timeout > time.Hour {
		return nil, nil, usagef("--timeout is %v: use 1ms to 1h", a.Timeout)
	}
	f, err := a.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	st, err := a.open(f.client)
	return f, st, err
}
