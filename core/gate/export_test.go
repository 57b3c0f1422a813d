package gate

import "github.com/neap-go/neap/core/internal/background"

// ForgetHints lets the process give each hint again.
func ForgetHints() {
	proxyHint, twiceHint = background.Hint{}, background.Hint{}
	looked.Store(0)
}

// Watched is how many requests are looked at for a hint.
const Watched = watched
