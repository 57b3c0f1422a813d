package gatefiber

import (
	"bufio"
	"bytes"
	"io"
	"reflect"

	"github.com/valyala/fasthttp"
)

// This file uses private fields of Fiber v2.52 and v3.1, and of fasthttp v1.51 and v1.69.
// The tests of the adapters fail if one is gone.

// OfUse returns a function that reports whether a route, a fiber.Route, was made by
// app.Use. Only Fiber's router knows that. If a version of Fiber lacks the field, the
// function is true for every route, so gates know no route.
func OfUse[Route any]() func(*Route) bool {
	use, known := reflect.TypeFor[Route]().FieldByName("use")
	return func(route *Route) bool {
		return !known || reflect.ValueOf(route).Elem().FieldByIndex(use.Index).Bool()
	}
}

// Unread reports whether the server could not read the request of a fiber.Ctx. Fiber v3
// then runs the middleware of app.Use, and no route. Only its router knows that. If a
// version of Fiber lacks the field, every request counts as read.
func Unread(c any) bool {
	v := reflect.Indirect(reflect.ValueOf(c))
	if v.Kind() != reflect.Struct {
		return false
	}
	unread, known := v.Type().FieldByName("skipNonUseRoutes")
	return known && v.FieldByIndex(unread.Index).Bool()
}

// fasthttp does not report whether a chunked body arrived whole, nor whether others have
// read a part of it. Only its streams know. If a version lacks their fields, a body that
// ended early passes for a whole one.

// hungUp reports whether a chunked stream ended because its connection did, at a place
// where a chunk was to begin. fasthttp takes that for the end of the body. In this case
// the stream's reader holds nothing. After a last chunk it still holds the bytes of that
// chunk.
func hungUp(stream io.Reader) bool {
	taken, known := buffered(stream)
	return known && len(taken) == 0
}

// readBefore reports whether others have read a part of a chunked stream. It does not
// read from the stream to find out: at its end, that would wait for what the client sends
// next.
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
	// Others have read nothing, or a body without chunks. In the first case the reader
	// holds the header of the request, whose last line has a colon or a space. In the
	// second case the last line is that of the last chunk.
	taken, _ := buffered(stream)
	last := bytes.TrimRight(taken, "\r\n")
	last = last[bytes.LastIndexByte(last, '\n')+1:]
	return len(taken) > 0 && !bytes.ContainsAny(last, ": \t")
}

// buffered returns the bytes that were taken from a stream's reader and that the reader
// still holds.
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

// detached returns a copy of stream that can be read after SetBodyStream has replaced
// stream. fasthttp then empties its own reader and uses it again.
func detached(stream io.Reader) io.Reader {
	v := reflect.ValueOf(stream)
	if v.Kind() != reflect.Pointer {
		return stream
	}
	own := reflect.New(v.Type().Elem())
	own.Elem().Set(v.Elem())
	return own.Interface().(io.Reader)
}

// setStream replaces the stream of a response's body. SetBodyStream of fasthttp would
// close the present one, and cut it off. setStream returns false if a version lacks the
// field; gates are then left before the stream.
func setStream(response *fasthttp.Response, with io.Reader) bool {
	field := reflect.ValueOf(response).Elem().FieldByName("bodyStream")
	if !field.IsValid() || field.Type() != reflect.TypeFor[io.Reader]() {
		return false
	}
	*(*io.Reader)(field.Addr().UnsafePointer()) = with
	return true
}
