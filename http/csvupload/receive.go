// Package csvupload receives a CSV file in a multipart form and answers with the same file, to which columns were added. Its
// constraint: a file is never in memory as a whole, and its rows keep their order, their encoding and their separator.
//
//	*http.Request ─> Receive ─> Upload ─> ReadTable ─> Table ─> Extend ─> the file with the columns of an Extension
//	                 to disk,   form      encoding,    columns,  batches of rows, filled in parallel,
//	                 size       fields    separator    rows      written in their order
//
// ReadTable reads the whole file once, so that it is known to be readable, and how many rows it has, before anything is answered.
package csvupload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"

	"lieudit/eventstore/osfile"
	"lieudit/http/bodylimit"
	"lieudit/http/problem"
	"lieudit/schemas/refusal"
)

const (
	// MaxFileBytes is the most bytes that a file may have, MaxBodyBytes the most of the form that holds it.
	MaxFileBytes = 50 << 20
	MaxBodyBytes = MaxFileBytes + 1<<20

	// maxFieldBytes is the most bytes that the other fields of a form may have, all together.
	maxFieldBytes = 64 << 10
	// maxFields is how many they may be.
	maxFields = 1000
)

// fileField is the field of a form that holds the file.
const fileField = "data"

// Upload is a form with a file. Close must be called.
type Upload struct {
	Fields   url.Values // of the form, the file aside
	FileName string     // as the client gave it; may be empty

	data io.ReaderAt
	size int64
	file *os.File // holds data; nil: it is in memory
}

// Receive reads a form. Files over bodylimit.Small are written to a folder. Its errors are those of reading the body,
// *http.MaxBytesError for a file over MaxFileBytes, refusal.RequestMalformed for what is no form with a file in it, and errors of
// the disk.
func Receive(r *http.Request, folder string) (*Upload, error) {
	form, err := r.MultipartReader()
	if err != nil {
		return nil, refusal.RequestMalformed
	}
	u := &Upload{Fields: url.Values{}}
	err = u.readParts(form, folder)
	if err == nil { // the server notices that a client leaves once the body was read to its end
		if _, err = io.Copy(io.Discard, r.Body); err != nil {
			err = readProblem(err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, u.Close())
	}
	return u, nil
}

func (u *Upload) readParts(form *multipart.Reader, folder string) error {
	left := int64(maxFieldBytes)
	for count := 0; ; count++ {
		part, err := form.NextPart()
		switch {
		case err == io.EOF && u.data != nil:
			return nil
		case err != nil || count > maxFields:
			return readProblem(err)
		case part.FormName() != fileField:
			left, err = u.readField(part, left)
		case u.data != nil: // a second file
			return refusal.RequestMalformed
		default:
			err = u.spool(part, folder)
		}
		if err != nil {
			return err
		}
	}
}

// readProblem is the error of a form that did not arrive whole. One that package problem does not know is a client that broke off,
// or that sent no form.
func readProblem(err error) error {
	if _, known := problem.FromError(err); err != nil && known {
		return err
	}
	return refusal.RequestMalformed
}

// readField reads a field that is no file, of at most left bytes, and returns how many are left for the others.
func (u *Upload) readField(part *multipart.Part, left int64) (int64, error) {
	value, err := io.ReadAll(io.LimitReader(part, left+1))
	if err != nil {
		return 0, readProblem(err)
	}
	if left -= int64(len(value)); left < 0 {
		return 0, refusal.RequestMalformed
	}
	u.Fields.Add(part.FormName(), string(value))
	return left, nil
}

// spool reads the file of a form. A small one stays in memory, as other small bodies do.
func (u *Upload) spool(part *multipart.Part, folder string) error {
	u.FileName = part.FileName()
	start, err := io.ReadAll(io.LimitReader(part, bodylimit.Small))
	if err != nil {
		return readProblem(err)
	}
	u.data, u.size = bytes.NewReader(start), int64(len(start))
	if len(start) < bodylimit.Small {
		return nil
	}
	if u.file, err = osfile.CreateUnnamed(folder); err != nil {
		return fmt.Errorf("spool an upload: %w", err)
	}
	u.data = u.file
	if _, err := u.file.Write(start); err != nil {
		return fmt.Errorf("spool an upload: %w", err)
	}
	return u.spoolRest(part)
}

// spoolRest copies the rest of a file to disk. An error of reading is the client's, one of writing the service's.
func (u *Upload) spoolRest(part io.Reader) error {
	buffer := make([]byte, 256<<10)
	for {
		n, readErr := part.Read(buffer)
		if u.size += int64(n); u.size > MaxFileBytes {
			return &http.MaxBytesError{Limit: MaxFileBytes}
		}
		if _, err := u.file.Write(buffer[:n]); err != nil {
			return fmt.Errorf("spool an upload: %w", err)
		}
		switch {
		case readErr == io.EOF:
			return nil
		case readErr != nil:
			return readProblem(readErr)
		}
	}
}

// open reads the file from its beginning. It may be called several times.
func (u *Upload) open() io.Reader { return io.NewSectionReader(u.data, 0, u.size) }

// Close frees the file.
func (u *Upload) Close() error {
	if u.file == nil {
		return nil
	}
	return u.file.Close()
}
