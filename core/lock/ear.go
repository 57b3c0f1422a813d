package lock

// ear is one caller's share in a subscription. A nil ear hears nothing.
type ear struct {
	of *bells
	ch *channel
}

// wake is how to be told of a release, or empty where that is not possible now.
func (e *ear) wake() string {
	if e == nil {
		return ""
	}
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	if e.ch.state != live {
		return ""
	}
	return e.ch.station.wake
}

// dead says that nothing will be heard.
func (e *ear) dead() bool {
	if e == nil {
		return true
	}
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	return e.ch.state == dead
}

// change is closed when a subscription that was not yet there is, or failed;
// it is nil where no change is to come.
func (e *ear) change(wake string) <-chan struct{} {
	if e == nil || wake != "" {
		return nil
	}
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	if e.ch.state == dead {
		return nil
	}
	return e.ch.known
}

func (e *ear) close() {
	if e != nil {
		e.of.leave(e.ch)
	}
}
