package mappedfile

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// servedFile is a file that counts how often it is closed.
type servedFile struct {
	*File
	label  string
	closes atomic.Int32
}

func (f *servedFile) Close() error {
	f.closes.Add(1)
	return f.File.Close()
}

// readNames reads the mapping and says which file answered.
func (f *servedFile) readNames() (string, error) {
	return f.label + " " + string(f.Section(secNames)), nil
}

// newServed opens a file that a holder is to own.
func newServed(t *testing.T, path, label string) *servedFile {
	t.Helper()
	f, err := Open(path, testFormat())
	if err != nil {
		t.Fatal(err)
	}
	return &servedFile{File: f, label: label}
}

// checkCloses checks how often a file was closed. Verify reports whether it is closed in truth.
func checkCloses(t *testing.T, f *servedFile, want int32) {
	t.Helper()
	isClosed := errors.Is(f.Verify(t.Context()), fs.ErrClosed)
	if got := f.closes.Load(); got != want || isClosed != (want > 0) {
		t.Errorf("%s was closed %d times (%v), want %d", f.label, got, isClosed, want)
	}
}

func TestAReaderKeepsTheFileItBeganOnAndTheLastOneClosesIt(t *testing.T) {
	t.Parallel()
	var h Holder[*servedFile]
	path := buildTestFile(t, testFormat())
	first, second := newServed(t, path, "first"), newServed(t, path, "second")
	h.Swap(first, first)
	a, _ := h.Acquire()
	b, _ := h.Acquire()
	h.Swap(second, second)
	checkCloses(t, first, 0)
	a.Release()
	checkCloses(t, first, 0)
	if got, _ := b.Engine.readNames(); got != "first Balzac!" {
		t.Errorf("the reader that began before reads %q", got)
	}
	b.Release()
	checkCloses(t, first, 1)
	if got, err := Query(&h, (*servedFile).readNames); got != "second Balzac!" || err != nil {
		t.Errorf("a later query: %q, %v", got, err)
	}
	checkCloses(t, second, 0)
	h.Withdraw(nil)
	checkCloses(t, second, 1)
}

func TestAFileSwappedDuringAQueryIsClosedWhenTheQueryEnds(t *testing.T) {
	t.Parallel()
	failure := errors.New("no such name")
	tests := map[string]struct {
		end  func() error
		want error
	}{
		"well": {end: func() error { return nil }}, "with an error": {end: func() error { return failure }, want: failure},
		"with a panic": {end: func() error { panic(failure) }, want: failure},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h Holder[*servedFile]
			path := buildTestFile(t, testFormat())
			first, second := newServed(t, path, "first"), newServed(t, path, "second")
			h.Swap(first, first)
			got, err := recoverQuery(&h, func(f *servedFile) (string, error) {
				h.Swap(second, second)
				checkCloses(t, first, 0)
				got, _ := f.readNames()
				return got, test.end()
			})
			if err != test.want || err == nil && got != "first Balzac!" {
				t.Errorf("got %q and %v, want the first file and %v", got, err, test.want)
			}
			checkCloses(t, first, 1)
			h.Withdraw(nil)
		})
	}
}

// recoverQuery is Query where a panic with an error is that error.
func recoverQuery(h *Holder[*servedFile], query func(*servedFile) (string, error)) (got string, err error) {
	defer func() {
		if cause, ok := recover().(error); ok {
			err = cause
		}
	}()
	return Query(h, query)
}

func TestSwapsDuringQueriesLoseNoAnswer(t *testing.T) {
	t.Parallel()
	var h Holder[*servedFile]
	path := buildTestFile(t, testFormat())
	files := []*servedFile{newServed(t, path, "any")}
	h.Swap(files[0], files[0])
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 500 {
				if got, err := Query(&h, (*servedFile).readNames); got != "any Balzac!" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	for range 20 {
		next := newServed(t, path, "any")
		files = append(files, next)
		h.Swap(next, next)
	}
	readers.Wait()
	h.Withdraw(nil)
	for _, f := range files {
		checkCloses(t, f, 1)
	}
}

func TestDamageUnderManyReadersWithdrawsOnce(t *testing.T) {
	t.Parallel()
	var h Holder[*servedFile]
	path := buildTestFile(t, testFormat())
	f := newServed(t, path, "cut")
	h.Swap(f, f)
	var begun, readers sync.WaitGroup
	var answers atomic.Int32
	for range 8 {
		begun.Add(1)
		readers.Go(func() {
			_, err := Query(&h, (*servedFile).readNames)
			begun.Done()
			for ; err == nil; _, err = Query(&h, (*servedFile).readNames) {
				answers.Add(1)
			}
			if _, ok := errors.AsType[*WithdrawnError](err); !ok || !errors.Is(err, errDamaged) || !errors.Is(err, ErrNone) {
				t.Errorf("got %v, want a *WithdrawnError for %v", err, errDamaged)
			}
		})
	}
	begun.Wait()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	readers.Wait()
	if answers.Load() < 8 {
		t.Errorf("%d answers before the damage, want one of each reader at least", answers.Load())
	}
	checkCloses(t, f, 1)
}

func TestDamageOfAReplacedFileLeavesTheNewOneServed(t *testing.T) {
	t.Parallel()
	var h Holder[*servedFile]
	path := buildTestFile(t, testFormat())
	first, second := newServed(t, path, "first"), newServed(t, path, "second")
	h.Swap(first, first)
	got, err := Query(&h, func(f *servedFile) (string, error) {
		h.Swap(second, second)
		f.MarkDamaged(errDamaged)
		return f.readNames()
	})
	if got != "" || !errors.Is(err, errDamaged) {
		t.Errorf("got %q, %v, want no answer and %v", got, err, errDamaged)
	}
	if got, err := Query(&h, (*servedFile).readNames); got != "second Balzac!" || err != nil {
		t.Errorf("the new file: %q, %v", got, err)
	}
	h.Withdraw(nil)
	checkCloses(t, first, 1)
	checkCloses(t, second, 1)
}

func TestAFileThatIsFoundDamagedBetweenQueriesIsNotAcquired(t *testing.T) {
	t.Parallel()
	var h Holder[*servedFile]
	f := newServed(t, buildTestFile(t, testFormat()), "damaged")
	h.Swap(f, f)
	f.MarkDamaged(errDamaged)
	if _, ok := h.Acquire(); ok {
		t.Error("it is acquired")
	}
	_, err := Query(&h, func(*servedFile) (int, error) { t.Error("it is read"); return 0, nil })
	if _, ok := errors.AsType[*WithdrawnError](err); !ok || !errors.Is(err, errDamaged) {
		t.Errorf("got %v, want a *WithdrawnError for %v", err, errDamaged)
	}
	h.Withdraw(nil)
	checkCloses(t, f, 1)
}

func TestAQueryWithoutAFileReportsTheReason(t *testing.T) {
	t.Parallel()
	reason, own := errors.New("gone"), errors.New("no test file")
	var plain Holder[*servedFile]
	named := Holder[*servedFile]{AbsenceError: func(reason error) error { return errors.Join(own, reason) }}
	for name, test := range map[string]struct {
		holder     *Holder[*servedFile]
		none, gone string
		isNone     error
	}{
		"its errors":            {&plain, "none is served", "none is served: gone", ErrNone},
		"errors of its package": {&named, "no test file", "no test file\ngone", own},
	} {
		ask := func() error {
			_, err := Query(test.holder, (*servedFile).readNames)
			return err
		}
		check := func(want string, wants ...error) {
			t.Helper()
			err := ask()
			for _, w := range wants {
				if !errors.Is(err, w) || err.Error() != want {
					t.Errorf("%s: got %v, want %q that is %v", name, err, want, w)
				}
			}
		}
		check(test.none, test.isNone)
		test.holder.Withdraw(reason)
		check(test.gone, test.isNone, reason)
		f := newServed(t, buildTestFile(t, testFormat()), "served")
		test.holder.Swap(f, f)
		if err := ask(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		test.holder.Withdraw(nil)
		check(test.none, test.isNone)
	}
}
