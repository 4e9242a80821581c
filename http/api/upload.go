package api

import (
	"context"
	"errors"
	"maps"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"lieudit/http/budget"
	"lieudit/http/csvfile"
	"lieudit/http/csvupload"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/queries/worker"
)

// Uploads is where files that clients send are kept while they are answered.
type Uploads struct {
	Folder string         // of the files that are too large for memory
	Budget *budget.Budget // in files: how many of those there may be at once
}

// fileJob is a file that is being answered. Its steps are receive, reserve and stream; free must be called.
type fileJob struct {
	call
	h        *handler
	endpoint string
	upload   *csvupload.Upload
	table    *csvupload.Table
	free     func() // may be called more than once
}

// receiveFile reads the form of a request, and the file in it. After an error there is nothing to free.
func (h *handler) receiveFile(r *http.Request, c call, endpoint string) (*fileJob, error) {
	release := budget.LimitBody(h.Uploads.Budget, r, budget.Admission{Account: c.Principal.Account, Limit: fileBody, Cost: 1})
	upload, err := csvupload.Receive(r, h.Uploads.Folder)
	if err != nil {
		release()
		return nil, err
	}
	j := &fileJob{call: c, h: h, endpoint: endpoint, upload: upload}
	j.free = sync.OnceFunc(func() {
		upload.Close() // nobody reads it any more
		release()
	})
	if err := j.readTable(r.Context()); err != nil {
		j.free()
		return nil, toFileProblem(err, upload)
	}
	return j, nil
}

// readTable reads the whole file once. That takes seconds for a large one, so it gives way to other requests.
func (j *fileJob) readTable(ctx context.Context) (err error) {
	const byteWork = 30 * time.Nanosecond // about, where cells are short
	ctx, task := j.h.newTask(ctx, j.Principal.Account)
	defer task.Release()
	if err := worker.Acquire(ctx); err != nil {
		return err
	}
	j.table, err = j.upload.ReadTable(func(read int64) error { return worker.Yield(ctx, time.Duration(read)*byteWork) })
	return err
}

// toFileProblem is the answer to a file that is not a CSV, or too wide: a broken rule of the field that holds it.
func toFileProblem(err error, upload *csvupload.Upload) error {
	_, isFormat := errors.AsType[*csvupload.FormatError](err)
	_, isWidth := errors.AsType[*csvupload.WidthError](err)
	if isFormat || isWidth {
		return fillFormInputs(problem.BrokenRule("body", "data", "value_error", "Value error, "+err.Error()), upload)
	}
	return err
}

// fillFormInputs sets the inputs of broken rules to the fields of a form. In place of the file it has its name.
func fillFormInputs(err error, upload *csvupload.Upload) error {
	fields := maps.Clone(upload.Fields)
	fields.Set("data", upload.FileName)
	return kit.FillFormInputs(err, fields)
}

// reserve counts the rows, all or none.
func (j *fileJob) reserve(ctx context.Context) error {
	if j.table.Rows == 0 {
		return nil
	}
	return j.Quota.Reserve(ctx, int64(j.table.Rows))
}

// respond is the answer: the file with the columns of an extension, sent while its rows are answered.
func (j *fileJob) respond(x csvupload.Extension) kit.Response {
	x.AcquireWorker = func(ctx context.Context) (func(), error) {
		return j.h.Workers.AcquirePatiently(ctx, j.Principal.Account, 1)
	}
	return kit.Response{
		Stream: func(ctx context.Context, w http.ResponseWriter) error {
			defer j.free()
			j.stream(ctx, w, x)
			return nil
		},
		Discard: func() {
			j.Quota.Refund(context.Background(), int64(j.table.Rows))
			j.free()
		},
	}
}

// stream sends the answer. The status is sent first, so what fails later breaks the answer off.
func (j *fileJob) stream(ctx context.Context, w http.ResponseWriter, x csvupload.Extension) {
	answered := 0
	defer func() { j.Quota.Refund(ctx, int64(j.table.Rows-answered)) }()
	w.Header().Set("Content-Type", strings.Replace(csvfile.MediaType, "utf-8", j.table.Charset(), 1))
	w.Header().Set("Content-Disposition", attachmentName(j.upload.FileName))
	w.WriteHeader(http.StatusOK)
	out := &fileWriter{ctx: ctx, out: w, isValid: j.revalidate}
	answered, err := j.table.Extend(ctx, out, x)
	if err == nil {
		return
	}
	if out.err == nil && ctx.Err() == nil && !errors.Is(err, budget.ErrOverloaded) { // any client can cause an overload with its file
		j.h.Log.Error("answer to a file broken off", "endpoint", j.endpoint, "rows", j.table.Rows, "answered", answered, "error", err)
	}
	kit.AbortResponse(w)
}

// attachmentName is the Content-Disposition of the answer to a file: its name, with .geocoded before the suffix.
func attachmentName(fileName string) string {
	name := path.Base(strings.ReplaceAll(fileName, `\`, "/"))
	name = strings.TrimSuffix(name, path.Ext(name))
	if name == "" || name == "/" || name == "." {
		name = "data"
	}
	return mime.FormatMediaType("attachment", map[string]string{"filename": name + ".geocoded.csv"})
}

// fileWriter writes batches of rows to a client that may read slowly. Before each it checks that the key is still valid: a file may
// take longer than a revocation.
type fileWriter struct {
	ctx     context.Context // of the request
	out     http.ResponseWriter
	isValid func(context.Context) error
	err     error // the client is gone or too slow, or its key has ended or cannot be checked now
}

func (f *fileWriter) Write(text []byte) (n int, err error) {
	if f.err = f.isValid(f.ctx); f.err != nil {
		return 0, f.err
	}
	n, f.err = f.out.Write(text)
	return n, f.err
}

// revalidate checks that the key of a long answer is still valid. Each check may wait for the log as long as a request may: the
// wait of the request, which the refund at the end uses too, begins anew.
func (j *fileJob) revalidate(ctx context.Context) error {
	a := j.Principal.Authentication
	a.Wait = j.h.Limiter.NewWait(a.Account)
	return j.h.authenticator.Revalidate(ctx, a)
}
