package gatefiber

import (
	"bytes"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/neap-go/neap/core/gate"
)

// multipartBody returns the body of a request whose Content-Type is that of a multipart
// form. If fasthttp has parsed the form before any handler ran, its bytes are gone, and
// the form is written anew. One form always has the same bytes, and different forms have
// different bytes.
func multipartBody(native *fasthttp.Request, max int64) ([]byte, error) {
	length := native.Header.ContentLength()
	if int64(length) > max {
		return nil, gate.ErrBodyTooLarge
	}
	var sent fasthttp.Request
	native.CopyTo(&sent) // the copy has no parsed form, from which Body would make up bytes
	if body := sent.Body(); len(body) > 0 {
		if int64(len(body)) > max {
			return nil, gate.ErrBodyTooLarge
		}
		return slices.Clip(body), nil
	}
	form, err := native.MultipartForm() // parses nothing: there is no body
	switch {
	case err == nil:
		return writtenAnew(form, &native.Header, max)
	case length > 0:
		return nil, gate.ErrBodyConsumed
	}
	return nil, nil
}

// writtenAnew writes a parsed form. It fails with [gate.ErrBodyBroken] if a gate would
// find other parts in it than a handler does.
func writtenAnew(form *multipart.Form, header *fasthttp.RequestHeader, max int64) ([]byte, error) {
	boundary := string(header.MultipartFormBoundary())
	_, params, err := mime.ParseMediaType(string(header.ContentType()))
	if err == nil && params["boundary"] != boundary {
		return nil, gate.ErrBodyBroken
	}
	var length int64
	pieces(form, boundary, func(text string, file *multipart.FileHeader) {
		length += int64(len(text))
		if file != nil {
			length += file.Size
		}
	})
	if length > max {
		return nil, gate.ErrBodyTooLarge
	}
	body, whole := make([]byte, 0, length), true
	pieces(form, boundary, func(text string, file *multipart.FileHeader) {
		body = append(body, text...)
		if file != nil {
			start := len(body)
			body = body[:start+int(file.Size)]
			whole = whole && contents(file, body[start:])
		}
	})
	if !whole {
		return nil, gate.ErrBodyConsumed
	}
	if bytes.Count(body, []byte("\r\n--"+boundary)) != parts(form) {
		return nil, gate.ErrBodyBroken // a part that was decoded has a delimiter inside
	}
	return body, nil
}

// pieces calls give with the pieces of the written form in order: a text, and the file
// that follows it, if any. A value has no filename, unlike a file.
func pieces(form *multipart.Form, boundary string, give func(text string, file *multipart.FileHeader)) {
	delimiter := "--" + boundary
	for _, name := range slices.Sorted(maps.Keys(form.Value)) {
		disposition := mime.FormatMediaType("form-data", map[string]string{"name": name})
		for _, value := range form.Value[name] {
			give(delimiter+"\r\nContent-Disposition: "+disposition+"\r\n\r\n", nil)
			give(value, nil)
			give("\r\n", nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(form.File)) {
		for _, file := range form.File[name] {
			give(delimiter+"\r\n", nil)
			for _, field := range slices.Sorted(maps.Keys(file.Header)) {
				for _, line := range file.Header[field] {
					give(field+": "+line+"\r\n", nil)
				}
			}
			give("\r\n", file)
			give("\r\n", nil)
		}
	}
	give(delimiter+"--\r\n", nil)
}

func parts(form *multipart.Form) (n int) {
	for _, values := range form.Value {
		n += len(values)
	}
	for _, files := range form.File {
		n += len(files)
	}
	return n
}

// contents reads a file into the slice. It returns false if others have moved the file
// away.
func contents(file *multipart.FileHeader, into []byte) bool {
	opened, err := file.Open()
	if err != nil {
		return false
	}
	defer opened.Close()
	_, err = io.ReadFull(opened, into)
	return err == nil
}
