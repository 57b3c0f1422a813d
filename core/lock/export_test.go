package lock

// Room sets how many grants without an answer a Locker looks for at a time.
func (l *Locker) Room(n int) { l.undo.Room = n }

const (
	HandsOn = handsOn
	Waits   = waits
)
