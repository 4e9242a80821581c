package vintages

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"lieudit/queries/address/vintage"
)

// Import is one import into a folder: either of CSV files, from which it builds a vintage, or of one finished vintage. The
// caller closes Sources.
type Import struct {
	Folder
	Sources   *Sources
	Millesime string                              // date of the data, as 2026-11-21; a finished vintage brings its own
	SHA256    string                              // of a finished vintage, in hexadecimal; "" for CSV files
	Fresh     bool                                // carry no id_ban over; then the current vintage need not be readable
	Progress  func(stage string, done, total int) // called while rows are read and the file is built; may be nil
	Now       time.Time                           // becomes part of the new vintage's name
}

// UnreadableCurrentError says that the current vintage cannot be read, so that its id_ban cannot be carried over. An
// id_ban identifies an address for customers across vintages. An import without Fresh refuses rather than lose them.
type UnreadableCurrentError struct{ Err error }

func (e *UnreadableCurrentError) Error() string {
	return fmt.Sprintf("the current vintage cannot be read, so no id_ban can be carried over from it: %v", e.Err)
}

func (e *UnreadableCurrentError) Unwrap() error { return e.Err }

// Run makes a vintage of the sources the current one: it builds one from CSV files, or copies a finished one. It does not
// wait for a running service; AwaitServed does. Its errors are those of Folder.Add and of reading the sources,
// *UnreadableCurrentError, *ChecksumError, ErrMixed and ErrUnfinished.
func (i Import) Run(ctx context.Context) (name string, s vintage.Summary, err error) {
	isFinished, err := i.Sources.IsFinishedVintage()
	if err != nil {
		return "", s, err
	}
	if isFinished {
		return i.Add(ctx, i.Now, func(path, _ string) (vintage.Summary, error) { return i.Sources.importFinished(path, i.SHA256) })
	}
	if i.SHA256 != "" {
		return "", s, ErrUnfinished
	}
	rows, stop := i.Sources.PeekRows()
	defer stop()
	return i.Add(ctx, i.Now, func(path, current string) (s vintage.Summary, err error) {
		synthetic := i.Sources.Report.Synthetic > 0
		previous, err := i.openPrevious(ctx, current, synthetic)
		if err != nil {
			return s, err
		}
		if previous != nil {
			defer func() { err = errors.Join(err, previous.Close()) }()
		}
		return vintage.Build(ctx, path, rows, vintage.Options{
			Millesime: i.Millesime, Synthetic: synthetic, Previous: previous, Progress: i.Progress,
		})
	})
}

// openPrevious opens the vintage whose id_ban are carried over; nil: none is. Nothing is carried over between invented
// and real addresses. A current vintage that is lost or damaged is an *UnreadableCurrentError.
func (i Import) openPrevious(ctx context.Context, current string, synthetic bool) (*vintage.Vintage, error) {
	if i.Fresh {
		return nil, nil
	}
	if current == "" {
		if lost := i.CheckLost(); lost != nil && !synthetic {
			return nil, &UnreadableCurrentError{lost}
		}
		return nil, nil
	}
	if isDemo(current) && !synthetic {
		return nil, nil
	}
	v, err := i.Open(current)
	if err != nil {
		return nil, &UnreadableCurrentError{err}
	}
	if v.Synthetic != synthetic {
		return nil, v.Close()
	}
	if err := v.Verify(ctx); err != nil {
		return nil, &UnreadableCurrentError{errors.Join(err, v.Close())}
	}
	return v, nil
}

// ChecksumError says that a finished vintage is not the one that the operator meant. Both fields are SHA-256 sums in
// hexadecimal; Want is "" when no sum was given.
type ChecksumError struct{ Want, Got string }

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("its SHA-256 is %s and should be %s", e.Got, e.Want)
}

var (
	// ErrMixed says that a finished vintage was named beside other files.
	ErrMixed = errors.New("a finished vintage is imported alone")
	// ErrUnfinished says that a SHA-256 was given and the sources are no finished vintage.
	ErrUnfinished = errors.New("a SHA-256 is that of a finished vintage, and this is none")
)

// IsFinishedVintage says whether the source is a finished vintage, by its first bytes. A finished vintage among several
// sources is ErrMixed. The bytes are kept, so the sources can still be read whole.
func (s *Sources) IsFinishedVintage() (bool, error) {
	for _, f := range s.files {
		text := bufio.NewReader(f.ReadCloser)
		head, err := text.Peek(16)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, fmt.Errorf("read %s: %w", f.name, err)
		}
		f.unread = text
		if vintage.HasMagic(head) {
			if len(s.files) > 1 {
				return false, fmt.Errorf("%s: %w", f.name, ErrMixed)
			}
			return true, nil
		}
	}
	return false, nil
}

// importFinished copies the finished vintage to a path, compares its SHA-256 and verifies all of the file. After an error
// no file is left.
func (s *Sources) importFinished(path, sum string) (out vintage.Summary, err error) {
	defer func() {
		if err != nil {
			os.Remove(path) // its error is dropped: the next import removes what is left
		}
	}()
	name := s.files[0].name
	got, err := s.copyWithChecksum(path)
	if err != nil {
		return out, fmt.Errorf("copy %s: %w", name, err)
	}
	if !strings.EqualFold(got, sum) {
		return out, fmt.Errorf("%s is not the vintage that was meant: %w", name, &ChecksumError{Want: sum, Got: got})
	}
	v, err := vintage.Open(path)
	if err != nil {
		return out, err
	}
	out.Meta, out.Bytes = v.Meta, v.Size()
	return out, errors.Join(v.Verify(s.ctx), v.Close())
}

// copyWithChecksum copies the only source to a path, synced, and returns its SHA-256 in hexadecimal.
func (s *Sources) copyWithChecksum(path string) (sum string, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, digest), countingReader{s.files[0].unread, s})
	return hex.EncodeToString(digest.Sum(nil)), errors.Join(err, file.Sync(), file.Close())
}

// Checksum is the SHA-256 of a vintage's file in hexadecimal, which an import of the file into another data folder needs.
// It reads the whole file.
func (f Folder) Checksum(name string) (string, error) {
	file, err := os.Open(f.Path(name))
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	_, err = io.Copy(digest, file)
	return hex.EncodeToString(digest.Sum(nil)), errors.Join(err, file.Close())
}
