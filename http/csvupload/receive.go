// Package csvupload receives a CSV file in a multipart form and answers with the same file, to which columns were added. A file is
// never in memory as a whole, and its rows keep their order, their encoding and their separator.
//
//	*http.Request ─> Receive ─> Upload ─> ReadTable ─> Table ─> Extend ─> the file with the columns of an Extension
//	                 to disk,   form      encoding,    columns,  batches of rows, filled in parallel,
//	                 size       fields    separator    rows      written in their order
//
// ReadTable reads the whole file once, so that an unreadable file is refused, and the rows are counted, before the answer begins.
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

	"lieudit/eventstore/disk/osfile"
	"lieudit/http/budget"
	"lieudit/http/problem"
	"lieudit/schemas/refusal"
)

const (
	// MaxFileBytes is the size of the largest file, MaxBodyBytes that of the largest form with a file.
	MaxFileBytes = 50 << 20
	MaxBodyBytes = MaxFileBytes + 1<<20

	// maxFieldBytes limits the total size of the other fields of a form, their names, and the name of the file.
	maxFieldBytes = 64 << 10
	// maxFields limits the number of the other fields.
	maxFields = 1000
	// maxHeadBytes limits the bytes between the contents of two parts of a form. mime/multipart would accept a head of 10 MB.
	maxHeadBytes = 64 << 10
)

// fileField is the field of a form that holds the file.
const fileField = "data"

// Upload is a form with a file. Close must be called.
type Upload struct {
	Fields   url.Values // of the form, without the file
	FileName string     // as the client sent it; may be empty

	data io.ReaderAt
	size int64
	file *os.File // holds data; nil if it is in memory
}

// Receive reads a form. A file of budget.SmallBody bytes or more is written to a folder. The errors are those of reading the body,
// *http.MaxBytesError for a file over MaxFileBytes, refusal.RequestMalformed for a body that is not a form with a file, and errors
// of the disk.
func Receive(r *http.Request, folder string) (*Upload, error) {
	guard := &headGuard{ReadCloser: r.Body}
	r.Body = guard
	form, err := r.MultipartReader()
	if err != nil {
		return nil, refusal.RequestMalformed
	}
	u := &Upload{Fields: url.Values{}}
	err = u.readParts(form, guard, folder)
	if err == nil { // the server notices that a client has left only if the body was read to its end
		if _, err = io.Copy(io.Discard, r.Body); err != nil {
			err = readProblem(err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, u.Close())
	}
	return u, nil
}

func (u *Upload) readParts(form *multipart.Reader, guard *headGuard, folder string) error {
	left := int64(maxFieldBytes)
	for count := 0; ; count++ {
		part, err := guard.nextPart(form)
		switch {
		case err == io.EOF && u.data != nil:
			return nil
		case err != nil || count > maxFields:
			return readProblem(err)
		case part.FormName() != fileField:
			left, err = u.readField(part, left)
		case u.data != nil || int64(len(part.FileName())) > left: // a second file
			return refusal.RequestMalformed
		default:
			left -= int64(len(part.FileName()))
			err = u.spool(part, folder)
		}
		if err != nil {
			return err
		}
	}
}

// headGuard is a body whose Read fails if the head of a part is longer than maxHeadBytes.
type headGuard struct {
	io.ReadCloser
	isHead bool // a head is being read
	left   int  // bytes that the head may still have
}

// nextPart reads to the beginning of the next part of a form. The content of the part before must have been read.
func (g *headGuard) nextPart(form *multipart.Reader) (*multipart.Part, error) {
	g.isHead, g.left = true, maxHeadBytes
	defer func() { g.isHead = false }()
	return form.NextPart()
}

func (g *headGuard) Read(p []byte) (int, error) {
	if !g.isHead {
		return g.ReadCloser.Read(p)
	}
	if g.left == 0 {
		return 0, refusal.RequestMalformed
	}
	n, err := g.ReadCloser.Read(p[:min(len(p), g.left)])
	g.left -= n
	return n, err
}

// readProblem returns the error to answer if a form was not read to its end. An error that package problem does not know means that the
// client broke off, or did not send a form.
func readProblem(err error) error {
	if _, known := problem.FromError(err); err != nil && known {
		return err
	}
	return refusal.RequestMalformed
}

// readField reads a field other than the file. With its name it may have left bytes; readField returns how many are left for the others.
func (u *Upload) readField(part *multipart.Part, left int64) (int64, error) {
	value, err := io.ReadAll(io.LimitReader(part, left+1))
	if err != nil {
		return 0, readProblem(err)
	}
	if left -= int64(len(value) + len(part.FormName())); left < 0 {
		return 0, refusal.RequestMalformed
	}
	u.Fields.Add(part.FormName(), string(value))
	return left, nil
}

// spool reads the file of a form, into memory if it is small, otherwise to disk.
func (u *Upload) spool(part *multipart.Part, folder string) error {
	u.FileName = part.FileName()
	start, err := io.ReadAll(io.LimitReader(part, budget.SmallBody))
	if err != nil {
		return readProblem(err)
	}
	u.data, u.size = bytes.NewReader(start), int64(len(start))
	if len(start) < budget.SmallBody {
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

// Close frees the file.
func (u *Upload) Close() error {
	if u.file == nil {
		return nil
	}
	return u.file.Close()
}
