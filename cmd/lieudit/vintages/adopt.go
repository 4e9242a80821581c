package vintages

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"lieudit/queries/address/vintage"
)

// SumError says that a finished vintage is not the one that was meant.
type SumError struct{ Want, Got string }

func (e *SumError) Error() string {
	return fmt.Sprintf("its SHA-256 is %s and should be %s", e.Got, e.Want)
}

// ErrMixed: a finished vintage was named beside other files.
var ErrMixed = errors.New("a finished vintage is imported alone")

// Finished says whether the one source is a finished vintage.
func (s *Sources) Finished() (bool, error) {
	for _, f := range s.files {
		text := bufio.NewReader(f.ReadCloser)
		head, err := text.Peek(16)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, fmt.Errorf("read %s: %w", f.name, err)
		}
		f.text = text
		if vintage.Signed(head) {
			if len(s.files) > 1 {
				return false, fmt.Errorf("%s: %w", f.name, ErrMixed)
			}
			return true, nil
		}
	}
	return false, nil
}

// adopt copies the finished vintage to a path and checks all of it.
func (s *Sources) adopt(path, sum string) (out vintage.Summary, err error) {
	defer func() {
		if err != nil {
			os.Remove(path) // what is left the next import sweeps
		}
	}()
	name := s.files[0].name
	got, err := s.copy(path)
	if err != nil {
		return out, fmt.Errorf("copy %s: %w", name, err)
	}
	if !strings.EqualFold(got, sum) {
		return out, fmt.Errorf("%s is not the vintage that was meant: %w", name, &SumError{Want: sum, Got: got})
	}
	v, err := vintage.Open(path)
	if err != nil {
		return out, err
	}
	out.Meta, out.Bytes = v.Meta, v.Size()
	return out, errors.Join(v.Verify(s.ctx), v.Close())
}

// copy copies the one source and returns its SHA-256.
func (s *Sources) copy(path string) (sum string, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, digest), counted{s.files[0].text, s})
	return hex.EncodeToString(digest.Sum(nil)), errors.Join(err, file.Sync(), file.Close())
}

// Sum is the SHA-256 of a vintage's file, by which another instance imports it.
func (f Folder) Sum(name string) (string, error) {
	file, err := os.Open(f.Path(name))
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	_, err = io.Copy(digest, file)
	return hex.EncodeToString(digest.Sum(nil)), errors.Join(err, file.Close())
}
