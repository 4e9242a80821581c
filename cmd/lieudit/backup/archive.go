package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// ErrNoBackup means that a file is not a backup, or that its beginning is destroyed.
var ErrNoBackup = errors.New("it is no backup of lieudit")

// DamagedError names the entry in which a backup is damaged.
type DamagedError struct {
	File, Entry string
	Err         error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged in %s: %v. Restore another copy", e.File, e.Entry, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// part is a file that goes into a backup: an open one, otherwise one at a path, otherwise a text.
type part struct {
	File
	open *os.File
	path string
	text []byte
}

// Progress receives how many bytes of a backup's files were written or read so far, and how many there are.
type Progress func(done, total int64)

// archiveWriter writes a backup: a tar file, compressed with zstd.
type archiveWriter struct {
	compressor *zstd.Encoder
	tar        *tar.Writer
	takenAt    time.Time
	sums       bytes.Buffer // the last entry, in the form of sha256sum
}

// writeArchive writes the manifest, the parts in its order, and the sums of all.
func writeArchive(ctx context.Context, out io.Writer, m Manifest, parts []part, progress Progress) error {
	compressor, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1)) // the other cores are the running service's
	if err != nil {
		return err
	}
	w := &archiveWriter{compressor: compressor, tar: tar.NewWriter(compressor), takenAt: m.TakenAt}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return errors.Join(err, compressor.Close())
	}
	done, total := int64(0), m.Size()
	err = w.addText(manifestEntry, append(text, '\n'))
	for _, p := range parts {
		if err == nil {
			err = w.addPart(ctx, p)
		}
		done += p.Size
		progress(done, total)
	}
	if err == nil {
		err = w.addText(sumsEntry, w.sums.Bytes())
	}
	if err == nil {
		err = w.tar.Close()
	}
	return errors.Join(err, compressor.Close())
}

func (w *archiveWriter) addPart(ctx context.Context, p part) error {
	switch {
	case p.open != nil:
		return w.add(p.File, contextReader{ctx, p.open})
	case p.path == "":
		return w.addText(p.Name, p.text)
	}
	file, err := os.Open(p.path)
	if err != nil {
		return err
	}
	return errors.Join(w.add(p.File, contextReader{ctx, file}), file.Close())
}

func (w *archiveWriter) addText(name string, text []byte) error {
	return w.add(File{name, int64(len(text))}, bytes.NewReader(text))
}

// add writes one entry and notes its sum. It fails if the size of a file has changed since it was listed.
func (w *archiveWriter) add(f File, content io.Reader) error {
	header := tar.Header{Name: f.Name, Size: f.Size, Mode: 0o600, ModTime: w.takenAt, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if err := w.tar.WriteHeader(&header); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w.tar, sum), content)
	if err == nil && n != f.Size {
		err = fmt.Errorf("it has %d bytes and had %d", n, f.Size)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	fmt.Fprintf(&w.sums, "%x  %s\n", sum.Sum(nil), f.Name)
	return nil
}

// contextReader ends with the context's error, so that an interrupt does not wait for a large file.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// archiveReader reads a backup from its beginning. openArchive has read its manifest.
type archiveReader struct {
	Manifest
	path         string
	file         *os.File
	decompressor *zstd.Decoder
	tar          *tar.Reader
	found        map[string]string // the sum of each entry that was read, in hexadecimal
}

// maxManifest bounds what is read of the two lists of a backup, in bytes.
const maxManifest = 64 << 20

// openArchive opens a backup and reads its manifest. It fails with ErrNoBackup, a *FormatError or a *DamagedError.
func openArchive(path string) (_ *archiveReader, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &archiveReader{path: path, file: file, found: map[string]string{}}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.decompressor, err = zstd.NewReader(file, zstd.WithDecoderMaxWindow(128<<20), zstd.WithDecoderConcurrency(1)); err != nil {
		return nil, err
	}
	r.tar = tar.NewReader(r.decompressor)
	text, err := r.readText(manifestEntry)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrNoBackup, err)
	}
	r.Manifest, err = parseManifest(path, text)
	var other *FormatError
	if err != nil && !errors.As(err, &other) {
		err = &DamagedError{path, manifestEntry, err}
	}
	return r, err
}

func (r *archiveReader) close() {
	if r.decompressor != nil {
		r.decompressor.Close()
	}
	r.file.Close() // it was only read
}

// readText reads the next entry, which must have a name, whole.
func (r *archiveReader) readText(name string) ([]byte, error) {
	var text bytes.Buffer
	if err := r.readEntry(File{Name: name, Size: -1}, &text); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// readEntry copies the next entry to out and notes its sum. The entry must have the name and the size of f; -1 is any size up to
// maxManifest.
func (r *archiveReader) readEntry(f File, out io.Writer) error {
	h, err := r.tar.Next()
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case h.Name != f.Name || h.Typeflag != tar.TypeReg:
		return fmt.Errorf("%q stands in its place", h.Name)
	case f.Size >= 0 && h.Size != f.Size || h.Size > maxManifest && f.Size < 0:
		return fmt.Errorf("it has %d bytes", h.Size)
	}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(out, sum), r.tar); err != nil {
		return err
	}
	r.found[f.Name] = hexSum(sum)
	return nil
}

func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// readFiles reads all files, each into the writer that create returns, and checks all sums last. create and its writers may fail
// with any error; damage of the backup is a *DamagedError.
func (r *archiveReader) readFiles(ctx context.Context, create func(File) (io.WriteCloser, error), progress Progress) error {
	done, total := int64(0), r.Size()
	for _, f := range r.Files {
		out, err := create(f)
		if err != nil {
			return err
		}
		w := &failingWriter{ctx: ctx, out: out}
		err = r.readEntry(f, w)
		if closeErr := out.Close(); w.err == nil {
			w.err = closeErr
		}
		if w.err != nil {
			return fmt.Errorf("%s: %w", f.Name, w.err)
		}
		if err != nil {
			return &DamagedError{r.path, f.Name, err}
		}
		done += f.Size
		progress(done, total)
	}
	return r.checkSums()
}

// failingWriter keeps the error of writing, which io.Copy would mix with those of reading.
type failingWriter struct {
	ctx context.Context
	out io.Writer
	err error
}

func (w *failingWriter) Write(p []byte) (n int, err error) {
	if w.err = w.ctx.Err(); w.err == nil {
		n, w.err = w.out.Write(p)
	}
	return n, w.err
}

// checkSums reads the last entry and compares it with what was read. Nothing may follow it.
func (r *archiveReader) checkSums() error {
	text, err := r.readText(sumsEntry)
	if err != nil {
		return &DamagedError{r.path, sumsEntry, err}
	}
	delete(r.found, sumsEntry) // its own sum is not recorded
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if r.found[name] != sum {
			return &DamagedError{r.path, name, errors.New("its SHA-256 is another")}
		}
		delete(r.found, name)
	}
	for name := range r.found {
		return &DamagedError{r.path, name, errors.New("its SHA-256 is missing")}
	}
	if _, err := r.tar.Next(); !errors.Is(err, io.EOF) {
		return &DamagedError{r.path, "its end", errors.Join(errors.New("something follows the last entry"), err)}
	}
	if _, err := io.Copy(zerosOnly{}, r.decompressor); err != nil { // read to the end: zstd's own sum is there
		return &DamagedError{r.path, "its end", err}
	}
	return nil
}

// zerosOnly fails if anything but zeros is written to it: tar fills its last block with them.
type zerosOnly struct{}

func (zerosOnly) Write(p []byte) (int, error) {
	if len(bytes.Trim(p, "\x00")) > 0 {
		return 0, errors.New("something follows it")
	}
	return len(p), nil
}

// ReadManifest reads a backup's manifest and not the rest of it.
func ReadManifest(path string) (Manifest, error) {
	r, err := openArchive(path)
	if err != nil {
		return Manifest{}, err
	}
	r.close()
	return r.Manifest, nil
}

// Verify reads a backup to its end and checks every sum.
func Verify(ctx context.Context, path string, progress Progress) (Manifest, error) {
	r, err := openArchive(path)
	if err != nil {
		return Manifest{}, err
	}
	defer r.close()
	discard := func(File) (io.WriteCloser, error) { return nopCloser{io.Discard}, nil }
	return r.Manifest, r.readFiles(ctx, discard, progress)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
