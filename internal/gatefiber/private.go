package gatefiber

import (
	"bufio"
	"bytes"
	"io"
	"reflect"
)

// This file reads private fields: those of Fiber v2.52 and v3.1, and of fasthttp
// v1.51 and v1.69. The tests of the adapters fail where one is gone.

// OfUse returns a function that says whether a route, a fiber.Route, is one of
// app.Use. Fiber tells that to its router alone. Without the field all of them are,
// so that no route is known.
func OfUse[Route any]() func(*Route) bool {
	use, known := reflect.TypeFor[Route]().FieldByName("use")
	return func(route *Route) bool {
		return !known || reflect.ValueOf(route).Elem().FieldByIndex(use.Index).Bool()
	}
}

// fasthttp does not say whether a chunked body came whole, nor whether somebody
// has read of it. Its streams know. Without their fields a body that ended early
// passes for a whole one.

// hungUp says of a chunked stream that has ended that its connection did, where
// a chunk was to begin: fasthttp takes that for the end of the body. Its reader
// then holds nothing, while behind a last chunk it holds what that was read of.
func hungUp(stream io.Reader) bool {
	taken, known := buffered(stream)
	return known && len(taken) == 0
}

// readBefore says of a chunked stream that others have read of it. To ask one
// that has ended would wait for what the client says next.
func readBefore(stream io.Reader) bool {
	if src, ok := stream.(*source); ok {
		return src.read > 0 || src.ended
	}
	v := reflect.Indirect(reflect.ValueOf(stream))
	if v.Kind() != reflect.Struct {
		return false
	}
	if read := v.FieldByName("totalBytesRead"); read.IsValid() && read.CanInt() && read.Int() > 0 {
		return true
	}
	// Nothing, or a body of no chunks: before it stands the request's header, of
	// whose last line there is a colon or a space ahead.
	taken, _ := buffered(stream)
	last := bytes.TrimRight(taken, "\r\n")
	last = last[bytes.LastIndexByte(last, '\n')+1:]
	return len(taken) > 0 && !bytes.ContainsAny(last, ": \t")
}

// buffered is what a stream's reader still holds of what was taken from it.
func buffered(stream io.Reader) (taken []byte, known bool) {
	v := reflect.Indirect(reflect.ValueOf(stream))
	if v.Kind() != reflect.Struct {
		return nil, false
	}
	reader := v.FieldByName("reader")
	if !reader.IsValid() || reader.Type() != reflect.TypeFor[*bufio.Reader]() || reader.IsNil() {
		return nil, false
	}
	buf, read := reader.Elem().FieldByName("buf"), reader.Elem().FieldByName("r")
	if !buf.IsValid() || buf.Type() != reflect.TypeFor[[]byte]() || !read.IsValid() || !read.CanInt() {
		return nil, false
	}
	return buf.Bytes()[:read.Int()], true
}

// detached is stream, to go on with after SetBodyStream has taken its place:
// fasthttp then empties its own reader to use it again, but not a copy.
func detached(stream io.Reader) io.Reader {
	v := reflect.ValueOf(stream)
	if v.Kind() != reflect.Pointer {
		return stream
	}
	own := reflect.New(v.Type().Elem())
	own.Elem().Set(v.Elem())
	return own.Interface().(io.Reader)
}
