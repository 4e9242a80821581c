package api

import (
	"context"
	"iter"
	"log/slog"
	"net/http"

	"lieudit/http/answer"
	"lieudit/http/sitefile"
	"lieudit/schemas/locations"
)

// createdBody is the body of an answer 201.
type createdBody struct{ body any }

// siteExport is an answer that is written while it is read. Its first site is at hand, so that what cannot be read at all is
// an error before the answer begins; what fails later breaks the answer off. It must be sent or dropped.
type siteExport struct {
	format     sitefile.Format
	current    locations.Site
	hasCurrent bool
	pull       func() (locations.Site, error, bool)
	stop       func()
}

func newSiteExport(f sitefile.Format, all iter.Seq2[locations.Site, error]) (*siteExport, error) {
	next, stop := iter.Pull2(all)
	first, err, more := next()
	if err != nil {
		stop()
		return nil, err
	}
	return &siteExport{f, first, more, next, stop}, nil
}

func (f *siteExport) stream(ctx context.Context, w http.ResponseWriter, log *slog.Logger) {
	defer f.stop()
	w.Header().Set("Content-Type", f.format.MediaType)
	w.WriteHeader(http.StatusOK)
	out := f.format.NewWriter(w)
	var err error
	for f.hasCurrent && err == nil {
		if err = out.WriteSite(f.current); err == nil {
			f.current, err, f.hasCurrent = f.pull()
		}
	}
	if err == nil {
		err = out.Finish()
	}
	if err == nil {
		return
	}
	if ctx.Err() == nil { // else nobody waits for the rest
		log.Error("export broken off", "error", err)
	}
	answer.AbortResponse(w)
}
