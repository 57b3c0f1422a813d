package lock

// listener is one caller's share of a channel. A nil listener receives nothing.
type listener struct {
	of *notifier
	ch *channel
}

// wake returns the command that a release should use to wake this listener, or "" if the
// listener cannot be woken now.
func (l *listener) wake() string {
	if l == nil {
		return ""
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.ch.state != live {
		return ""
	}
	return l.ch.subscription.wake
}

// dead reports whether the listener will receive nothing any more.
func (l *listener) dead() bool {
	if l == nil {
		return true
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	return l.ch.state == dead
}

// change returns a channel that is closed when a subscription in progress has
// succeeded or failed. It is nil if none is in progress.
func (l *listener) change(wake string) <-chan struct{} {
	if l == nil || wake != "" {
		return nil
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.ch.state == dead {
		return nil
	}
	return l.ch.known
}

func (l *listener) close() {
	if l != nil {
		l.of.leave(l.ch)
	}
}
