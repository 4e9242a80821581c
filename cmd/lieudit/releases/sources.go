package releases

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
)

// Sources are the open files and URLs that an import reads, in order and once. One goroutine reads them; others may read
// BytesRead meanwhile.
type Sources struct {
	ctx        context.Context // ends reading with the import
	Files      []*Source
	TotalBytes int64        // of all sources as they are stored, compressed or not; 0 when the size of one is not known
	BytesRead  atomic.Int64 // so far
}

// Source is one open file or the body of one URL. Read counts in BytesRead, and fails once the context of the import has
// ended.
type Source struct {
	Name    string
	Path    string // of a file on this machine; "" for a URL
	sources *Sources
	closer  io.Closer
	unread  *bufio.Reader
	size    int64     // -1: not known
	date    time.Time // of the last change; zero: not known
}

// OpenSources opens all sources, so that a missing one is noticed before anything is read. The context bounds reading too.
func OpenSources(ctx context.Context, names []string) (*Sources, error) {
	s := &Sources{ctx: ctx}
	for _, name := range names {
		f, err := openSource(ctx, name)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		f.sources = s
		s.Files = append(s.Files, f)
		s.TotalBytes += f.size
		if f.size < 0 { // so that the sum stays negative whatever is added
			s.TotalBytes = -1 << 60
		}
	}
	s.TotalBytes = max(s.TotalBytes, 0)
	return s, nil
}

// openSource opens a URL if the name begins with http:// or https://, otherwise a file.
func openSource(ctx context.Context, name string) (*Source, error) {
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
	return &Source{Name: filepath.Base(name), Path: name, closer: file, unread: bufio.NewReader(file), size: info.Size(), date: info.ModTime()}, nil
}

// openURL starts a download. Any status but 200 is an error; its text hides the password that the URL may hold.
func openURL(ctx context.Context, address string) (*Source, error) {
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
	date, _ := http.ParseTime(resp.Header.Get("Last-Modified")) // zero if there is none
	return &Source{Name: name, closer: resp.Body, unread: bufio.NewReader(resp.Body), size: resp.ContentLength, date: date}, nil
}

// Close closes all sources.
func (s *Sources) Close() error {
	var errs []error
	for _, f := range s.Files {
		errs = append(errs, f.closer.Close())
	}
	return errors.Join(errs...)
}

// Read implements io.Reader.
func (f *Source) Read(p []byte) (int, error) {
	if err := f.sources.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := f.unread.Read(p)
	f.sources.BytesRead.Add(int64(n))
	return n, err
}

// Peek returns the first 16 bytes, or all if the source is shorter. Read still returns them.
func (f *Source) Peek() ([]byte, error) {
	head, err := f.unread.Peek(16)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", f.Name, err)
	}
	return head, nil
}

// CopyTo copies the source to a path, synced, and returns its SHA-256 in hexadecimal.
func (f *Source) CopyTo(path string) (sum string, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	if _, err = io.Copy(io.MultiWriter(file, digest), f); err != nil {
		err = fmt.Errorf("copy %s: %w", f.Name, err)
	}
	return hex.EncodeToString(digest.Sum(nil)), errors.Join(err, file.Sync(), file.Close())
}

// datePattern finds what looks like a date in a file's name: 2026-11-21, 2026_11_21 or 20261121. Its groups are year, month
// and day.
var datePattern = regexp.MustCompile(`(?:^|\D)(20\d\d)[-_]?([01]\d)[-_]?([0-3]\d)(?:\D|$)`)

// Date is the latest date of the sources, as 2026-11-21. The date of a source is the one in its name, otherwise that of its last
// change, in UTC: then isFileDate is true, and the data may be older. It is "" when no source has a date.
func (s *Sources) Date() (latest string, isFileDate bool) { return s.latestDate(dateInName) }

// RoughDate is Date for data whose day matters less: a month or a year alone in a name counts too, as its first day.
func (s *Sources) RoughDate() (latest string, isFileDate bool) { return s.latestDate(roughDateInName) }

// latestDate is Date with a function that finds the date in a name.
func (s *Sources) latestDate(find func(name string) (date string, ok bool)) (latest string, isFileDate bool) {
	for _, f := range s.Files {
		date, isNamed := find(f.Name)
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

// monthPattern finds a month or a year alone in a file's name: 2024-05, 202405 or 2024. Its groups are year and month. It does not
// match if more digits follow.
var monthPattern = regexp.MustCompile(`(?:^|\D)(20\d\d)(?:[-_]?(0[1-9]|1[0-2]))?(?:[-_]?[^-_\d]|[-_]?$)`)

// roughDateInName is the date in a file's name, otherwise the first day of the month or of the year in it.
func roughDateInName(name string) (date string, ok bool) {
	if date, ok = dateInName(name); ok {
		return date, true
	}
	m := monthPattern.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	return m[1] + "-" + cmp.Or(m[2], "01") + "-01", true
}

// MixedError means that a finished release was named along with other files.
type MixedError struct{ Name, Noun string }

func (e *MixedError) Error() string {
	return fmt.Sprintf("%s: a finished %s is imported alone", e.Name, e.Noun)
}

// UnfinishedError means that a SHA-256 was given although the sources are not a finished release.
type UnfinishedError struct{ Noun string }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("a SHA-256 is that of a finished %s, and this is none", e.Noun)
}

// ChecksumError means that a finished release is not the one that the operator meant. Both fields are SHA-256 sums in
// hexadecimal; Want is "" if no sum was given.
type ChecksumError struct{ Want, Got string }

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("its SHA-256 is %s and should be %s", e.Got, e.Want)
}

// IsFinished reports whether the source is a finished release, by its first bytes. A finished release among several sources is
// a *MixedError, and a checksum given for anything else an *UnfinishedError. The sources can still be read whole.
func (f Folder[F]) IsFinished(s *Sources, sum string) (bool, error) {
	for _, file := range s.Files {
		head, err := file.Peek()
		if err != nil {
			return false, err
		}
		if f.kind.HasMagic(head) {
			if len(s.Files) > 1 {
				return false, &MixedError{file.Name, f.kind.Noun}
			}
			return true, nil
		}
	}
	if sum != "" {
		return false, &UnfinishedError{f.kind.Noun}
	}
	return false, nil
}

// CopyFinished copies a finished release, the only source, to a path, compares its SHA-256, verifies all of the file and
// opens it. After an error no file is left. Another sum is a *ChecksumError.
func (f Folder[F]) CopyFinished(s *Sources, path, sum string) (v F, err error) {
	defer func() {
		if err != nil {
			os.Remove(path) // its error is dropped: the next import removes what is left
		}
	}()
	got, err := s.Files[0].CopyTo(path)
	if err != nil {
		return v, err
	}
	if !strings.EqualFold(got, sum) {
		return v, fmt.Errorf("%s is not the %s that was meant: %w", s.Files[0].Name, f.kind.Noun, &ChecksumError{sum, got})
	}
	if v, err = f.kind.Open(path); err != nil {
		return v, err
	}
	file := f.kind.File(v)
	if err := file.Verify(s.ctx); err != nil {
		return v, errors.Join(err, file.Close())
	}
	return v, nil
}

// Checksum is the SHA-256 of a release's file in hexadecimal, which an import of the file into another data folder needs. It
// reads the whole file.
func (f Folder[F]) Checksum(name string) (string, error) {
	file, err := os.Open(f.Path(name))
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	_, err = io.Copy(digest, file)
	return hex.EncodeToString(digest.Sum(nil)), errors.Join(err, file.Close())
}
