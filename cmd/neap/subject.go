package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/neap-go/neap/core/gate"
)

// whom is the subject, key or item of a command.
type whom struct {
	Subject []string `arg:"" help:"The subject as a gate's key writes it: ip=203.0.113.7, header:x-api-key=…, user or all; several for a gate.Join. You may also give the hash that Redis has (#…)."`
	AsIs    bool     `name:"as-is" help:"Take SUBJECT exactly as it is written, and do not read it as an address, a header name or a path."`
}

// text is the subject as the library's calls want it.
func (w *whom) text() (string, error) {
	parts := make([]string, len(w.Subject))
	for i, part := range w.Subject {
		parts[i] = part
		if part == "" {
			return "", usagef("the subject is empty: say whom or what the command is about")
		}
		if w.AsIs {
			continue
		}
		var err error
		if parts[i], err = written(part); err != nil {
			return "", usagef("%q: %w; give --as-is if it stands so in Redis", part, err)
		}
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	keys := make([]gate.Key, len(parts))
	for i, part := range parts {
		keys[i] = func(gate.Request) (string, error) { return part, nil }
	}
	joined, err := gate.Subject(gate.Join(keys...), gate.Values{})
	if err != nil {
		return "", usage(err)
	}
	return joined, nil
}

// written is a part as the key of its kind writes it. A part without such a kind stays as it is.
func written(part string) (subject string, err error) {
	defer func() { // a key of a gate panics on a name that it cannot have
		if why := recover(); why != nil {
			err = fmt.Errorf("%v", why)
		}
	}()
	tag, value, tagged := strings.Cut(part, "=")
	kind, name, _ := strings.Cut(tag, ":")
	if !tagged {
		if _, fault := netip.ParseAddr(part); fault == nil { // a ban of it would ban no client
			err = errors.New("a gate writes an address as ip=" + part)
		}
		return part, err
	}
	name = strings.NewReplacer("%3D", "=", "%25", "%").Replace(name)
	switch kind {
	case "ip":
		return address(value)
	case "path":
		return gate.Subject(gate.ByPath(), gate.Values{Path: value})
	case "header":
		return gate.Subject(gate.ByHeader(name), gate.Values{Header: map[string]string{name: value}, Host: value})
	case "param":
		return gate.Subject(gate.ByParam(name), gate.Values{Route: "/{" + name + "}", Params: map[string]string{name: value}})
	}
	return part, nil
}

var errAddress = errors.New("that is no IP address: write ip=203.0.113.7, or ip=2001:db8::1/56 where IPOptions.IPv6Prefix is 56, " +
	"or ip=203.0.113.7/24 where IPOptions.IPv4Prefix is 24")

// address is the subject of an IP address. An IPv6 address becomes its network: of 64 bits, unless the text has another
// number. An IPv4 address becomes one if the text has a number.
func address(text string) (string, error) {
	var o gate.IPOptions
	addr, err := netip.ParseAddr(text)
	if network, fault := netip.ParsePrefix(text); fault == nil {
		addr, err = network.Addr(), nil
		switch {
		case network.Bits() == 0 || addr.Is4In6(): // the options do not say such a network
			return "", errAddress
		case addr.Is4():
			o.IPv4Prefix = network.Bits()
		default:
			o.IPv6Prefix = network.Bits()
		}
	}
	if err != nil {
		return "", errAddress
	}
	return gate.Subject(gate.ByIP(&o), gate.Values{Addr: addr})
}
