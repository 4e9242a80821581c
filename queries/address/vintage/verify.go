package vintage

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"
)

// piece is how much of a file is checked between two looks at the context.
const piece = 1 << 20

// Verify reads the whole file and checks every section. It reads the file and not the mapping, so that a slow disk
// stops no other reader, and one that fails is an error. What it finds is damage for good.
func (v *Vintage) Verify(ctx context.Context) error { return v.verify(ctx, func(time.Duration) {}) }

// VerifyGently is Verify beside questions: it leaves them three quarters of a core and of the disk.
func (v *Vintage) VerifyGently(ctx context.Context) error {
	const longest = 2 * time.Millisecond // a disk that is slow rests while it is waited for
	return v.verify(ctx, func(worked time.Duration) { time.Sleep(min(3*worked, longest)) })
}

func (v *Vintage) verify(ctx context.Context, rest func(worked time.Duration)) error {
	buf := make([]byte, piece)
	for id := secMeta; id < sectionEnd; id++ {
		sum, err := v.sumOf(ctx, v.table[id], buf, rest)
		switch {
		case errors.Is(err, os.ErrClosed) || ctx.Err() != nil:
			return err
		case errors.Is(err, io.EOF):
			return v.Condemn(fmt.Errorf("%w: it was cut short", ErrDamaged))
		case err != nil:
			return v.Condemn(fmt.Errorf("%w: section %d: %w", ErrDamaged, id, err))
		case sum != v.table[id].sum:
			return v.Condemn(fmt.Errorf("%w: section %d", ErrDamaged, id))
		}
	}
	return v.Damage()
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
