package adapter

import (
	"bytes"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"slices"

	"github.com/neap-go/neap/core/gate"
)

// OddBoundary reports whether a server reads another boundary from the Content-Type of a
// multipart form than gates do.
func OddBoundary(contentType, boundary string) bool {
	kind, params, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "multipart/form-data" && params["boundary"] != boundary
}

// Form writes a multipart form that the server has parsed before any handler ran, when the
// bytes that were sent are gone. One form always has the same bytes, and different forms
// have different bytes: fields sorted by name, then files with their headers. boundary is
// what the server has parsed the form with, and contentType the Content-Type of the
// request.
//
// Form fails with [gate.ErrBodyTooLarge] if the bytes are more than max, with
// [gate.ErrBodyConsumed] if others have moved a file of the form away, and with
// [gate.ErrBodyBroken] if a gate would find other parts in the bytes than a handler finds
// in the form.
func Form(form *multipart.Form, boundary, contentType string, max int64) ([]byte, error) {
	if OddBoundary(contentType, boundary) {
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
