package server

import (
	"context"
	"iter"
	"log/slog"
	"net/http"

	"lieudit/http/answer"
	"lieudit/http/roster"
	"lieudit/schemas/site"
)

// created is the body of an answer 201.
type created struct{ body any }

// file is an answer that is written while it is read. Its first site is at hand, so that what cannot be read at all is
// an error before the answer begins; what fails later breaks the answer off. It must be sent or dropped.
type file struct {
	format roster.Format
	site   site.Site
	more   bool
	next   func() (site.Site, error, bool)
	drop   func()
}

func newFile(f roster.Format, all iter.Seq2[site.Site, error]) (*file, error) {
	next, stop := iter.Pull2(all)
	first, err, more := next()
	if err != nil {
		stop()
		return nil, err
	}
	return &file{f, first, more, next, stop}, nil
}

func (f *file) send(ctx context.Context, w http.ResponseWriter, log *slog.Logger) {
	defer f.drop()
	w.Header().Set("Content-Type", f.format.Media)
	w.WriteHeader(http.StatusOK)
	out := f.format.Begin(w)
	var err error
	for f.more && err == nil {
		if err = out.Site(f.site); err == nil {
			f.site, err, f.more = f.next()
		}
	}
	if err == nil {
		err = out.End()
	}
	if err == nil {
		return
	}
	if ctx.Err() == nil { // else nobody waits for the rest
		log.Error("export broken off", "error", err)
	}
	answer.Cut(w)
}
