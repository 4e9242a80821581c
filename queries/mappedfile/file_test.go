package mappedfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Sections of the format that the tests use. The first version has the first one alone.
const (
	secNames Section = iota + 1
	secNumbers
	secBig
	secEmpty
)

var (
	errOther   = errors.New("not a test file")
	errDamaged = errors.New("the test file is damaged")
)

func testFormat() Format {
	return Format{
		Magic: "mappedfile-test\n", FirstVersion: 4, SectionCounts: []int{1, int(secEmpty)}, CheckedAtOpen: 8 << 20,
		ErrOther: errOther, ErrDamaged: errDamaged,
	}
}

func bigColumn() []uint64 {
	column := make([]uint64, 200_000) // more than one stride of writes
	for i := range column {
		column[i] = uint64(i) << 20
	}
	return column
}

// buildTestFile builds a small file and returns its path.
func buildTestFile(t testing.TB, format Format) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	size, err := Build(path, format, func(_ string, w *Writer) error {
		w.Append(secNames, []byte("Bal")) // an odd length, so that padding follows
		w.Append(secNames, []byte("zac"))
		w.Append(secNames, []byte("!"))
		if len(w.files) > int(secNumbers) {
			w.AppendU32(secNumbers, 1, 2, 1<<31)
			AppendColumn(w, secBig, bigColumn())
		}
		return w.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != size || size%8 != 0 {
		t.Fatalf("size %d and %v (%v), want a multiple of 8", size, info.Size(), err)
	}
	return path
}

// openTestFile opens a file until the test ends.
func openTestFile(t testing.TB, path string, format Format) *File {
	t.Helper()
	f, err := Open(path, format)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestWhatWasAppendedIsReadAgain(t *testing.T) {
	t.Parallel()
	path := buildTestFile(t, testFormat())
	f := openTestFile(t, path, testFormat())
	if got := string(f.Section(secNames)); got != "Balzac!" {
		t.Errorf("names %q", got)
	}
	if got, err := View[uint32](f, secNumbers); err != nil || !slices.Equal(got, []uint32{1, 2, 1 << 31}) {
		t.Errorf("numbers %v, %v", got, err)
	}
	if got, err := View[int32](f, secNumbers); err != nil || got[2] != -1<<31 {
		t.Errorf("signed numbers %v, %v", got, err)
	}
	if got, err := View[uint64](f, secBig); err != nil || !slices.Equal(got, bigColumn()) {
		t.Errorf("%d big numbers, %v", len(got), err)
	}
	if got, err := View[float64](f, secEmpty); err != nil || len(got) != 0 {
		t.Errorf("empty %v, %v", got, err)
	}
	if _, err := View[uint16](f, secNames); !errors.Is(err, errDamaged) {
		t.Errorf("seven bytes as 16-bit numbers: %v, want %v", err, errDamaged)
	}
	if err := f.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left beside the file: %v", entries)
	}
}

func TestNumbersAreLittleEndian(t *testing.T) {
	t.Parallel()
	if got := encodeColumn([]uint32{1, 0x0a0b0c0d}); !bytes.Equal(got, []byte{1, 0, 0, 0, 0x0d, 0x0c, 0x0b, 0x0a}) {
		t.Errorf("% x", got)
	}
	if got := decodeColumn[uint16](encodeColumn([]uint16{1, 0x0a0b})); !slices.Equal(got, []uint16{1, 0x0a0b}) {
		t.Errorf("%x", got)
	}
	if got := encodeColumn[uint32](nil); len(got) != 0 {
		t.Errorf("none: % x", got)
	}
}

func TestAnOlderVersionIsReadAndItsMissingSectionsAreEmpty(t *testing.T) {
	t.Parallel()
	older := testFormat()
	older.SectionCounts = older.SectionCounts[:1]
	f := openTestFile(t, buildTestFile(t, older), testFormat())
	if f.Version() != 4 || string(f.Section(secNames)) != "Balzac!" || f.Section(secBig) != nil {
		t.Errorf("version %d, names %q, big %v", f.Version(), f.Section(secNames), f.Section(secBig))
	}
	_, err := Open(buildTestFile(t, testFormat()), older)
	if !errors.Is(err, errOther) || !strings.Contains(err.Error(), "its format is 5, this program reads 4 to 4") {
		t.Errorf("a later version: %v, want %v", err, errOther)
	}
}

func TestABuildThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	dir, failure := t.TempDir(), errors.New("no more rows")
	_, err := Build(filepath.Join(dir, "file"), testFormat(), func(string, *Writer) error { return failure })
	if entries, _ := os.ReadDir(dir); !errors.Is(err, failure) || len(entries) != 0 {
		t.Errorf("%v, left: %v", err, entries)
	}
}

func TestWhatWasAppendedCanBeReadBackWhileItGrows(t *testing.T) {
	t.Parallel()
	_, err := Build(filepath.Join(t.TempDir(), "file"), testFormat(), func(_ string, w *Writer) error {
		for n := range uint64(3) {
			w.AppendU32(secNumbers, uint32(n))
			r, err := w.ReadBack(secNumbers)
			if err != nil {
				return err
			}
			var got [4]byte
			if _, err := r.ReadAt(got[:], int64(n)*4); err != nil || uint64(got[0]) != n || w.Length(secNumbers) != n*4+4 {
				t.Errorf("%d: %v, %v, length %d", n, got, err, w.Length(secNumbers))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestATruncatedFileIsRefusedByName(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(buildTestFile(t, testFormat()))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 15, headerSize - 1, headerSize, 100, len(data) / 2, len(data) - 1} {
		path := writeFile(t, data[:n])
		_, err := Open(path, testFormat())
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%d of %d bytes: %v, want a refusal that names %s", n, len(data), err, path)
		}
		if !errors.Is(err, errDamaged) && !errors.Is(err, errOther) {
			t.Errorf("%d bytes: %v is neither damage nor another format", n, err)
		}
	}
}

// writeFile writes bytes to a new file.
func writeFile(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "written")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAFlippedBitIsFoundByOpenOrByVerify(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(buildTestFile(t, testFormat()))
	if err != nil {
		t.Fatal(err)
	}
	format := testFormat()
	format.CheckedAtOpen = -1 // as if each section were too large to be checked
	_, sections, err := format.parseHeader(whole)
	if err != nil {
		t.Fatal(err)
	}
	header := int(sections[secNames].offset)
	for at := range header {
		if _, err := Open(writeFile(t, flipBit(whole, at)), testFormat()); err == nil {
			t.Fatalf("bit in byte %d of the header: opened", at)
		}
	}
	for _, id := range []Section{secNames, secNumbers, secBig} {
		path := writeFile(t, flipBit(whole, int(sections[id].offset+sections[id].length/2)))
		if _, err := Open(path, testFormat()); !errors.Is(err, errDamaged) {
			t.Errorf("section %d: opened with %v, want %v", id, err, errDamaged)
		}
		f := openTestFile(t, path, format)
		if err := f.Verify(t.Context()); !errors.Is(err, errDamaged) || !errors.Is(f.Damage(), errDamaged) {
			t.Errorf("section %d: verified with %v, want %v", id, err, errDamaged)
		}
		if err := f.Guard(func() error { t.Error("it is read"); return nil }); !errors.Is(err, errDamaged) {
			t.Errorf("section %d: read with %v, want %v", id, err, errDamaged)
		}
	}
}

// flipBit is a copy of data with one bit of a byte flipped.
func flipBit(data []byte, at int) []byte {
	out := bytes.Clone(data)
	out[at] ^= 4
	return out
}

func TestVerifyChecksTheTableOfSectionsToo(t *testing.T) {
	t.Parallel()
	path := buildTestFile(t, testFormat())
	f := openTestFile(t, path, testFormat())
	data := bytes.Clone(f.data)
	data[headerSize+2*sectionEntrySize] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(t.Context()); !errors.Is(err, errDamaged) {
		t.Errorf("got %v, want %v", err, errDamaged)
	}
}

func TestAFileCutShortUnderAReaderEndsTheReadAndNotTheProcess(t *testing.T) {
	t.Parallel()
	path := buildTestFile(t, testFormat())
	f := openTestFile(t, path, testFormat())
	sum := uint64(0)
	read := func() error {
		column, err := View[uint64](f, secBig)
		for _, n := range column {
			sum += n
		}
		return err
	}
	if err := f.Guard(read); err != nil || sum == 0 {
		t.Fatal(sum, err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Guard(read); !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("got %v, want %v", err, errDamaged)
	}
	if err := f.Guard(func() error { t.Error("it is read again"); return nil }); !errors.Is(err, errDamaged) {
		t.Errorf("read again: %v, want %v", err, errDamaged)
	}
}

func TestWhatWasReadInADamagedFileIsNotReliedOn(t *testing.T) {
	t.Parallel()
	f := openTestFile(t, buildTestFile(t, testFormat()), testFormat())
	damage := errors.New("found meanwhile")
	if err := f.Guard(func() error { f.MarkDamaged(damage); return nil }); !errors.Is(err, damage) {
		t.Errorf("got %v, want %v", err, damage)
	}
	if err := f.MarkDamaged(errors.New("later")); !errors.Is(err, damage) {
		t.Errorf("got %v, want what was said first", err)
	}
}

func TestOtherPanicsPassThroughAGuard(t *testing.T) {
	t.Parallel()
	f := openTestFile(t, buildTestFile(t, testFormat()), testFormat())
	for name, read := range map[string]func(){
		"a word": func() { panic("word") }, "an index": func() { _ = f.data[:0][f.version] }, "nil": func() { var e *sectionEntry; e.sum++ },
	} {
		func() {
			defer func() {
				if recover() == nil || f.Damage() != nil {
					t.Errorf("%s: swallowed, or taken for damage: %v", name, f.Damage())
				}
			}()
			f.Guard(func() error { read(); return nil })
		}()
	}
}

func TestVerifyNamesAFileThatWasCutShort(t *testing.T) {
	t.Parallel()
	path := buildTestFile(t, testFormat())
	f := openTestFile(t, path, testFormat())
	if err := f.VerifyGently(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, f.Size()/2); err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(t.Context()); !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("got %v, want %v", err, errDamaged)
	}
}

func TestACanceledOrClosedVerifyFindsNoDamage(t *testing.T) {
	t.Parallel()
	f, err := Open(buildTestFile(t, testFormat()), testFormat())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Verify(ctx); !errors.Is(err, context.Canceled) || f.Damage() != nil {
		t.Errorf("canceled: %v, damage %v", err, f.Damage())
	}
	f.Close()
	if err := f.Verify(t.Context()); !errors.Is(err, fs.ErrClosed) || f.Damage() != nil {
		t.Errorf("closed: %v, damage %v", err, f.Damage())
	}
}

// FuzzParseHeader replaces the table of sections by any bytes with the right checksums: the file may be refused, and no
// section may lie outside of it.
func FuzzParseHeader(f *testing.F) {
	whole, err := os.ReadFile(buildTestFile(f, testFormat()))
	if err != nil {
		f.Fatal(err)
	}
	format := testFormat()
	end := format.headerLength(format.version())
	f.Add(whole[headerSize:end])
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, table []byte) {
		data := bytes.Clone(whole)
		copy(data[headerSize:end], table)
		binary.LittleEndian.PutUint32(data[32:], checksum(data[headerSize:end]))
		binary.LittleEndian.PutUint32(data[36:], checksum(data[:36]))
		_, entries, err := format.parseHeader(data)
		if err != nil && !errors.Is(err, errDamaged) {
			t.Error(err)
		}
		for _, e := range entries {
			if _ = data[e.offset:][:e.length]; e.offset%8 != 0 {
				t.Errorf("section %d begins at %d", e.id, e.offset)
			}
		}
	})
}

// BenchmarkGuard measures what Guard costs a query.
func BenchmarkGuard(b *testing.B) {
	f := openTestFile(b, buildTestFile(b, testFormat()), testFormat())
	for b.Loop() {
		if err := f.Guard(func() error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
