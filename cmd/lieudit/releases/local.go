package releases

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lieudit/eventstore/disk/dirlock"
	"lieudit/eventstore/disk/osfile"
)

// A file is the same on every instance that serves it, and is identified by its SHA-256. Next to each file another one holds its
// sum. Until the log knows of the file, that one also marks it as pending: it was imported here, or an operator chose it, and the
// service has yet to release it to the other instances (package peers).

// Local is a release's file in this folder.
type Local struct {
	Name, Sum string
	Label
	Bytes   int64
	Version int    // of the file's format
	Secret  string // of a pending file: identifies its release and lets others fetch it; "" if the file is not pending
}

// IsPending reports whether the file's release is not on the log yet.
func (l Local) IsPending() bool { return l.Secret != "" }

// ErrNoCurrent means that a folder has no current release, or that its file is missing.
var ErrNoCurrent = errors.New("no release is current")

// Noun is what messages call a release of this folder.
func (f Folder[F]) Noun() string { return f.kind.Noun }

// Versions returns the oldest and the newest version of the file's format that this program opens.
func (f Folder[F]) Versions() (first, last int) { return f.kind.Versions() }

// CurrentFile returns the current release's file, or ErrNoCurrent if there is none. It reads all of a file whose sum was never
// noted, such as one that an earlier program left. known is what it returned last: the same file is not opened again.
func (f Folder[F]) CurrentFile(known Local) (l Local, err error) {
	name, err := f.Current()
	if err != nil || name == "" {
		return l, errors.Join(ErrNoCurrent, err)
	}
	if sum, secret, err := f.readSum(name); err == nil && name == known.Name && sum == known.Sum && secret == known.Secret {
		return known, nil
	}
	v, err := f.Open(name)
	if err != nil {
		return l, errors.Join(ErrNoCurrent, err)
	}
	file := f.kind.File(v)
	l = Local{Name: name, Label: f.kind.Describe(v), Bytes: file.Size(), Version: int(file.Version())}
	if err := file.Close(); err != nil {
		return l, err
	}
	if IsDemo(name) {
		l.Date = DemoDate
		return l, nil
	}
	l.Sum, l.Secret, err = f.noteSum(name)
	return l, err
}

// sumPath is the file that holds the sum of a release.
func (f Folder[F]) sumPath(name string) string { return f.Path(name) + sumExtension }

// readSum reads the noted sum of a release. Both results are "" if no sum is noted.
func (f Folder[F]) readSum(name string) (sum, secret string, err error) {
	text, err := readNameFile(f.sumPath(name))
	sum, rest, _ := strings.Cut(text, " ")
	return sum, rest, err
}

// noteSum reads the noted sum of a release. If no sum is noted, it computes and notes it.
func (f Folder[F]) noteSum(name string) (sum, secret string, err error) {
	if sum, secret, err = f.readSum(name); err != nil || sum != "" {
		return sum, secret, err
	}
	if sum, err = f.Checksum(name); err != nil {
		return "", "", err
	}
	return sum, "", replaceNameFile(f.sumPath(name), sum)
}

// secretBytes is the length of a release's secret before hexadecimal encoding.
const secretBytes = 32

// notePending notes the sum of a release and that it is pending.
func (f Folder[F]) notePending(name string) error {
	sum, err := f.Checksum(name)
	if err != nil {
		return err
	}
	secret := make([]byte, secretBytes)
	rand.Read(secret) // never fails
	return replaceNameFile(f.sumPath(name), sum+" "+hex.EncodeToString(secret))
}

// MarkReleased notes that a file's release is on the log.
func (f Folder[F]) MarkReleased(name, sum string) error { return replaceNameFile(f.sumPath(name), sum) }

// FindSum returns the path of a release by its sum, "" if no file has that noted sum.
func (f Folder[F]) FindSum(sum string) (name, path string) {
	for _, name := range f.listNames() {
		if noted, _, err := f.readSum(name); err == nil && noted == sum {
			return name, f.Path(name)
		}
	}
	return "", ""
}

// BeforeSum returns the sum of the release that was current before, "" if its file is missing.
func (f Folder[F]) BeforeSum() string {
	name := f.before()
	if name == "" {
		return ""
	}
	if _, err := os.Stat(f.Path(name)); err != nil {
		return ""
	}
	sum, _, _ := f.readSum(name) // a release whose sum cannot be read is not offered
	return sum
}

// UnknownSumError means that no sum in the folder begins with what an operator typed, or that several do.
type UnknownSumError struct {
	Noun, Sum string
	Found     []string // the sums in the folder
}

func (e *UnknownSumError) Error() string {
	return fmt.Sprintf("no %s here has the sum %s alone; there are %s", e.Noun, e.Sum, strings.Join(e.Found, ", "))
}

// Serve makes a release of the folder the current one and marks it as pending. The release is named by its sum or the beginning of it;
// an unknown one is an *UnknownSumError. Serve locks the folder.
func (f Folder[F]) Serve(ctx context.Context, sum string, now time.Time) (name string, err error) {
	lock, err := f.acquire(ctx, now)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &UnknownSumError{Noun: f.kind.Noun, Sum: sum}
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	var found, fitting []string
	for _, candidate := range f.listNames() {
		if IsDemo(candidate) {
			continue
		}
		noted, _, err := f.noteSum(candidate)
		if err != nil {
			return "", err
		}
		found = append(found, noted)
		if sum != "" && strings.HasPrefix(noted, strings.ToLower(sum)) {
			fitting = append(fitting, candidate)
		}
	}
	if len(fitting) != 1 {
		return "", &UnknownSumError{f.kind.Noun, sum, found}
	}
	name = fitting[0]
	if err := f.notePending(name); err != nil {
		return "", err
	}
	return name, f.activate(name)
}

// Activate makes a release whose file is in the folder the current one. It locks the folder: while an import holds that, the error is
// a *dirlock.HeldError.
func (f Folder[F]) Activate(name string, now time.Time) (err error) {
	lock, err := dirlock.Acquire(f.dir, now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return f.activate(name)
}

// activate is Activate for a caller that holds the folder's lock.
func (f Folder[F]) activate(name string) error {
	v, err := f.Open(name)
	if err != nil {
		return err
	}
	label := f.kind.Describe(v)
	if err := f.kind.File(v).Close(); err != nil {
		return err
	}
	_, unreadable := f.Current()
	return f.makeCurrent(name, label.IsSynthetic, unreadable != nil)
}

// FetchPath returns the path at which the file with a sum is kept while it is fetched. It removes the files of other fetches, so that
// they take no space.
func (f Folder[F]) FetchPath(sum string) (string, error) {
	dir := filepath.Join(f.dir, fetchingFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != sum {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return filepath.Join(dir, sum), err
}

// MakeRoom removes the previous release, and what killed imports left behind. While an import holds the folder it does nothing.
func (f Folder[F]) MakeRoom(now time.Time) error {
	return f.removeAllBut(now, func() string { return "" })
}

// AddFetched makes a fetched file, whose sum was verified, the current release under a name. Like Add it locks the folder.
func (f Folder[F]) AddFetched(ctx context.Context, path, name, sum string, now time.Time) (err error) {
	v, err := f.kind.Open(path)
	if err != nil {
		return err
	}
	label, file := f.kind.Describe(v), f.kind.File(v)
	if err := errors.Join(file.VerifyGently(ctx), file.Close()); err != nil {
		return err
	}
	lock, err := dirlock.Acquire(f.dir, now) // not earlier, so that no import waits for the verification
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	_, unreadable := f.repairCurrent(ctx)
	if err := osfile.Rename(path, f.Path(name)); err != nil {
		return err
	}
	if err := f.MarkReleased(name, sum); err != nil {
		return err
	}
	return f.makeCurrent(name, label.IsSynthetic, unreadable != nil)
}
