package vintages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"lieudit/queries/address/ban"
)

// Sources are the open files and URLs that an import reads, in order and once. One goroutine reads them; others may read
// BytesRead meanwhile. IsFinishedVintage comes first, and then either PeekRows or a copy of the finished vintage.
type Sources struct {
	ctx        context.Context // ends reading with the import
	files      []*source
	TotalBytes int64        // of all sources as they are stored, compressed or not; 0 when the size of one is not known
	BytesRead  atomic.Int64 // so far
	Report     ban.Report   // rows read, and those left out with their reasons
}

// source is one open file or the body of one URL.
type source struct {
	name string
	io.ReadCloser
	unread io.Reader // the rest, with what IsFinishedVintage has peeked at
	size   int64     // -1: not known
	date   time.Time // of the last change; zero: not known
}

// OpenSources opens all sources, so that a missing one is noticed before anything is read. The context bounds reading too.
func OpenSources(ctx context.Context, names []string) (*Sources, error) {
	s := &Sources{ctx: ctx}
	for _, name := range names {
		f, err := openSource(ctx, name)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.files = append(s.files, f)
		s.TotalBytes += f.size
		if f.size < 0 { // so that the sum stays negative whatever is added
			s.TotalBytes = -1 << 60
		}
	}
	s.TotalBytes = max(s.TotalBytes, 0)
	return s, nil
}

// openSource opens a URL where the name begins with http:// or https://, else a file.
func openSource(ctx context.Context, name string) (*source, error) {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return openURL(ctx, name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder; name the files in it", name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &source{name: filepath.Base(name), ReadCloser: file, unread: file, size: info.Size(), date: info.ModTime()}, nil
}

// openURL starts a download. Any status but 200 is an error; its text hides the password that the URL may hold.
func openURL(ctx context.Context, address string) (*source, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s answers %s", req.URL.Redacted(), resp.Status), resp.Body.Close())
	}
	name := req.URL.Path
	if u, err := url.Parse(address); err == nil {
		name = path.Base(u.Path)
	}
	date, _ := http.ParseTime(resp.Header.Get("Last-Modified")) // zero when there is none
	return &source{name: name, ReadCloser: resp.Body, unread: resp.Body, size: resp.ContentLength, date: date}, nil
}

// Close closes all sources.
func (s *Sources) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// datePattern finds what looks like a date in a file's name: 2026-11-21, 2026_11_21 or 20261121. Its groups are year, month
// and day.
var datePattern = regexp.MustCompile(`(?:^|\D)(20\d\d)[-_]?([01]\d)[-_]?([0-3]\d)(?:\D|$)`)

// Millesime is the latest date of the sources, as 2026-11-21. The date of a source is the one in its name, else that of
// its last change, in UTC: then isFileDate is true, and the data may be older. It is "" when no source has a date.
func (s *Sources) Millesime() (latest string, isFileDate bool) {
	for _, f := range s.files {
		date, isNamed := dateInName(f.name)
		if !isNamed && !f.date.IsZero() {
			date = f.date.UTC().Format(time.DateOnly)
		}
		if date > latest || date == latest && isNamed {
			latest, isFileDate = date, !isNamed
		}
	}
	return latest, isFileDate
}

// dateInName is the date in a file's name, as 2026-11-21.
func dateInName(name string) (date string, ok bool) {
	m := datePattern.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	date = strings.Join(m[1:], "-")
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		return "", false
	}
	return date, true
}

// Rows yields the rows of all sources in order. Bad rows are left out and counted in Report; an error of reading is yielded
// and ends the rows. It can be run once.
func (s *Sources) Rows(yield func(ban.Row, error) bool) {
	for _, f := range s.files {
		for row, err := range ban.Read(countingReader{f.unread, s}, f.name, &s.Report) {
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// countingReader adds what it reads to BytesRead, and fails once the context of the import has ended.
type countingReader struct {
	io.Reader
	sources *Sources
}

func (c countingReader) Read(p []byte) (int, error) {
	if err := c.sources.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.Reader.Read(p)
	c.sources.BytesRead.Add(int64(n))
	return n, err
}

// PeekRows reads the first row and returns an iterator over all rows, that one included. So Report says whether the
// addresses are invented before a vintage is built from them. The caller calls stop when it needs no more rows.
func (s *Sources) PeekRows() (rows iter.Seq2[ban.Row, error], stop func()) {
	next, stop := iter.Pull2(s.Rows)
	row, err, ok := next()
	return func(yield func(ban.Row, error) bool) {
		for ; ok && yield(row, err); row, err, ok = next() {
		}
	}, stop
}
