package vintage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"
)

// piece is how much of a file is checked between two looks at the context.
const piece = 256 << 10

// Verify reads the whole file and checks every section. It reads the file and not the mapping, so that a slow disk
// stops no other reader, and one that fails is an error. What it finds is damage for good.
func (v *Vintage) Verify(ctx context.Context) error { return v.verify(ctx, func(time.Duration) {}) }

// VerifyGently is Verify beside questions: it leaves them three quarters of a core and of the disk.
func (v *Vintage) VerifyGently(ctx context.Context) error {
	const longest = 2 * time.Millisecond // a disk that is slow rests while it is waited for
	return v.verify(ctx, func(worked time.Duration) { time.Sleep(min(3*worked, longest)) })
}

func (v *Vintage) verify(ctx context.Context, rest func(worked time.Duration)) error {
	err := v.verifyHead()
	buf := make([]byte, piece)
	for id := secMeta; id < sectionEnd && err == nil; id++ {
		var sum uint32
		if sum, err = v.sumOf(ctx, v.table[id], buf, rest); err == nil && sum != v.table[id].sum {
			err = fmt.Errorf("%w: section %d", ErrDamaged, id)
		}
	}
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, os.ErrClosed):
		return errors.Join(err, v.Damage())
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("%w: it was cut short", ErrDamaged)
	case !errors.Is(err, ErrDamaged):
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return v.Condemn(err)
}

// verifyHead checks that the header and the table of sections are those that were opened.
func (v *Vintage) verifyHead() error {
	head := make([]byte, headLength(v.format))
	if _, err := v.file.ReadAt(head, 0); err != nil {
		return err
	}
	if digestOf(head) != v.digest {
		return fmt.Errorf("%w: header", ErrDamaged)
	}
	return nil
}

// digestOf is the digest of a vintage, by its header and table of sections.
func digestOf(head []byte) string {
	sum := sha256.Sum256(head)
	return hex.EncodeToString(sum[:8])
}

func (v *Vintage) sumOf(ctx context.Context, e entry, buf []byte, rest func(time.Duration)) (sum uint32, err error) {
	table := castagnoli()
	for from := e.offset; from < e.offset+e.length; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		begun := time.Now()
		part := buf[:min(uint64(len(buf)), e.offset+e.length-from)]
		if _, err := v.file.ReadAt(part, int64(from)); err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, table, part)
		from += uint64(len(part))
		rest(time.Since(begun))
	}
	return sum, nil
}
