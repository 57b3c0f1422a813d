package gate

import "errors"

// ErrMissing is what a [Key] fails with when the request does not carry what
// the key is made of. [FirstOf] then asks its next key; anywhere else it is
// answered with a 400. A Key that wants another answer joins the two:
//
//	return "", errors.Join(gate.ErrMissing, gate.Refuse(401, "Sign in first"))
var ErrMissing = errors.New("gate: the request carries no such key")

// ErrWiring is wrapped by what the OnError hook receives when the fault is in
// how a gate is mounted or fed rather than in the request: a route key where
// the framework knows no route yet, a key that is empty, a value of a type
// that identifies nothing.
var ErrWiring = errors.New("gate: wrong wiring")

// Refuse makes the error with which a [Key], or a Cost or Choose function of a
// gate's options, refuses a request: it is answered with status and title, as
// said, and no hook is told. The title reaches the client. What [Request.Body] fails with they
// can return as it is: [ErrBodyTooLarge] is answered with a 413, [ErrBodyBroken] with a 400.
//
// A status outside 400 to 499 is no refusal: it is answered with a 500 and
// goes to the OnError hook, like any other error.
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

// missing is a refusal that FirstOf passes over.
func missing(status int, title string) error {
	return &refusal{status: status, title: title, missing: true}
}

// asRefusal finds the refusal in err, if the request is at fault at all.
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
