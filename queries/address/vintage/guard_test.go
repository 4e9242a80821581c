package vintage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// flipped is a whole file with one bit of a section flipped.
func flipped(t *testing.T, data []byte, id section) []byte {
	t.Helper()
	_, table, err := cut(data)
	if err != nil {
		t.Fatal(err)
	}
	if table[id].length == 0 {
		return nil
	}
	spoilt := append([]byte(nil), data...)
	spoilt[table[id].offset+table[id].length/2] ^= 4
	return spoilt
}

func TestABitInAnySectionIsFoundByOpenOrByVerify(t *testing.T) {
	t.Parallel()
	data := whole(t)
	for id := secMeta; id < sectionEnd; id++ {
		spoilt := flipped(t, data, id)
		if spoilt == nil {
			continue
		}
		if _, _, err := written(t, spoilt); !errors.Is(err, ErrDamaged) {
			t.Errorf("section %d: opened with %v, want %v", id, err, ErrDamaged)
		}
		path := filepath.Join(t.TempDir(), "v")
		if err := os.WriteFile(path, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := open(path, -1) // as if each section were too large to be looked at
		if errors.Is(err, ErrDamaged) && id == secMeta {
			continue // it says nothing any more
		}
		if err != nil {
			t.Fatalf("section %d: %v", id, err)
		}
		if err := v.Verify(t.Context()); !errors.Is(err, ErrDamaged) || !errors.Is(v.Damage(), ErrDamaged) {
			t.Errorf("section %d: verified with %v, want %v", id, err, ErrDamaged)
		}
		if err := v.Guard(func() error { t.Error("it is asked"); return nil }); !errors.Is(err, ErrDamaged) {
			t.Errorf("section %d: asked with %v, want %v", id, err, ErrDamaged)
		}
		v.Close()
	}
}

// opened is a whole vintage in a file.
func opened(t *testing.T) (*Vintage, string) {
	t.Helper()
	v, path, err := written(t, whole(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v, path
}

func TestVerifyChecksTheTableOfSectionsToo(t *testing.T) {
	t.Parallel()
	v, path := opened(t)
	data := append([]byte(nil), v.data...)
	data[headerSize+3*entrySize] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(t.Context()); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v, want %v", err, ErrDamaged)
	}
}

func TestAFileCutShortUnderAReaderEndsTheReadAndNotTheProcess(t *testing.T) {
	t.Parallel()
	v, path := opened(t)
	read := func() error {
		return v.Guard(func() error {
			touch(v, 0, "haute")
			return nil
		})
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := read(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("got %v, want %v", err, ErrDamaged)
	}
	if err := v.Guard(func() error { t.Error("it is asked again"); return nil }); !errors.Is(err, ErrDamaged) {
		t.Errorf("asked again: %v, want %v", err, ErrDamaged)
	}
}

func TestWhatWasReadInADamagedVintageIsNotReliedOn(t *testing.T) {
	t.Parallel()
	v, _ := opened(t)
	damage := errors.New("found meanwhile")
	if err := v.Guard(func() error { v.Condemn(damage); return nil }); !errors.Is(err, damage) {
		t.Errorf("got %v, want %v", err, damage)
	}
	if err := v.Condemn(errors.New("later")); !errors.Is(err, damage) {
		t.Errorf("got %v, want what was said first", err)
	}
}

func TestOtherPanicsPassThroughAGuard(t *testing.T) {
	t.Parallel()
	v, _ := opened(t)
	for name, f := range map[string]func(){
		"a word": func() { panic("word") }, "an index": func() { _ = v.data[:0][v.Streets] }, "nil": func() { var m *Meta; m.Streets++ },
	} {
		func() {
			defer func() {
				if recover() == nil || v.Damage() != nil {
					t.Errorf("%s: swallowed, or taken for damage: %v", name, v.Damage())
				}
			}()
			v.Guard(func() error { f(); return nil })
		}()
	}
}

func TestVerifyNamesAFileThatWasCutShort(t *testing.T) {
	t.Parallel()
	v, path := opened(t)
	if err := v.VerifyGently(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, v.Size()/2); err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(t.Context()); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("got %v, want %v", err, ErrDamaged)
	}
}

func TestAVerifyThatIsCalledOffOrClosedFindsNoDamage(t *testing.T) {
	t.Parallel()
	v, _, err := written(t, whole(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.Verify(ctx); !errors.Is(err, context.Canceled) || v.Damage() != nil {
		t.Errorf("called off: %v, damage %v", err, v.Damage())
	}
	v.Close()
	if err := v.Verify(t.Context()); !errors.Is(err, fs.ErrClosed) || v.Damage() != nil {
		t.Errorf("closed: %v, damage %v", err, v.Damage())
	}
}

func TestABuildWhosePredecessorIsCutShortFailsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	v, path := opened(t)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "next")
	_, err := Build(t.Context(), out, each(village()), Options{Previous: v})
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "id_ban") {
		t.Errorf("got %v, want %v", err, ErrDamaged)
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is something: %v", err)
	}
}

// BenchmarkGuard is what it costs a question to be guarded.
func BenchmarkGuard(b *testing.B) {
	path := filepath.Join(b.TempDir(), "v")
	if _, err := Build(context.Background(), path, each(village()), Options{}); err != nil {
		b.Fatal(err)
	}
	v, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	for b.Loop() {
		if err := v.Guard(func() error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
