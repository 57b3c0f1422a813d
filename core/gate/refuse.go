package gate

import "errors"

// ErrMissing is the error of a [Key] if the request does not carry what the key is made
// from. [FirstOf] then asks its next key. Everywhere else the answer is a 400, or a 401
// if the key is the principal of [Idempotent]. A Key that wants another answer joins two
// errors:
//
//	return "", errors.Join(gate.ErrMissing, gate.Refuse(401, "Sign in first"))
var ErrMissing = errors.New("gate: the request carries no such key")

// ErrWiring is wrapped by the errors that the OnError hook gets if the fault lies in how
// a gate is mounted or fed, not in the request. Examples are a route key where the
// framework does not know the route yet, a key that is empty, and a value of a type that
// identifies nothing.
var ErrWiring = errors.New("gate: wrong wiring")

// miswired is an ErrWiring whose text has nothing of what a client sent, and no error of
// others, so that the log may have it.
type miswired struct{ remedy string }

func (m *miswired) Error() string { return ErrWiring.Error() + ": " + m.remedy }
func (m *miswired) Unwrap() error { return ErrWiring }

// Refuse makes the error with which a [Key], or a function of a gate's options such as
// Cost or Policies, refuses a request. The answer has this status and this title, and no
// hook is told. The title reaches the client.
//
// These functions can return the errors of [Request.Body] as they are: [ErrBodyTooLarge]
// is answered with a 413, and [ErrBodyBroken] with a 400.
//
// A status outside 400 to 499 is not a refusal. It is answered with a 500, and the error
// goes to the OnError hook like any other.
func Refuse(status int, title string) error {
	return &refusal{status: status, title: title}
}

type refusal struct {
	status  int
	title   string
	missing bool
}

func (r *refusal) Error() string { return "gate: refused: " + r.title }

func (r *refusal) Is(target error) bool { return r.missing && target == ErrMissing }

// missing is a refusal on which FirstOf asks its next key.
func missing(status int, title string) error {
	return &refusal{status: status, title: title, missing: true}
}

// asRefusal finds the refusal in err. It reports false if the fault is not the request's.
func asRefusal(err error) (*refusal, bool) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r, r.status >= 400 && r.status <= 499
	}
	switch {
	case errors.Is(err, ErrMissing):
		return &refusal{status: 400, title: "The request does not say whom it is for", missing: true}, true
	case errors.Is(err, ErrBodyTooLarge):
		return &refusal{status: 413, title: "The body of the request is too large"}, true
	case errors.Is(err, ErrBodyBroken):
		return &refusal{status: 400, title: "The body of the request could not be read"}, true
	}
	return nil, false
}
