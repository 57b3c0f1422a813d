package callback

import "fmt"

// oneOf returns the value of a header field that a provider spells in several ways. Only one
// value can be the one that is proven. So oneOf returns an error if a spelling is there
// twice, or if two spellings say different things, and does not choose between them.
func oneOf(d *Delivery, spellings ...string) (string, error) {
	value, from := "", ""
	for _, name := range spellings {
		lines := d.Header.Values(name)
		switch {
		case len(lines) > 1:
			return "", fmt.Errorf("the header field %s is there %d times", name, len(lines))
		case len(lines) == 0:
		case from != "" && lines[0] != value:
			return "", fmt.Errorf("the header fields %s and %s differ", from, name)
		default:
			value, from = lines[0], name
		}
	}
	if value == "" {
		return "", fmt.Errorf("the header field %s is missing", spellings[0])
	}
	return value, nil
}
