package osmpbf

import (
	"context"
	"errors"
	"io"
	"iter"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// task is one blob on its way through a scan. Tasks are reused, and with them all memory of their decoders.
type task struct {
	frame
	inflater
	decoder
	blob []byte
	err  error
	done chan struct{} // receives once the blob is decoded
}

// Scan reads the whole file and calls visit with the elements of the wanted kinds, a block at a time, in file order, from the
// goroutine that called Scan. Blocks are decoded on all cores meanwhile. A block and its slices are reused after visit returns; its
// strings are not. An error of visit ends the scan and is returned unchanged; so is the error of ctx. progress may be nil; it
// receives the offset up to which the file was visited.
//
// The first Scan that reaches the end remembers what each blob holds, so that later ones skip blobs without wanted kinds.
func (f *File) Scan(ctx context.Context, kinds Kinds, progress func(bytesDone int64), visit func(*Block) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := f.newScan(kinds)
	var group errgroup.Group // without its context, so that blobs before a cut are still visited
	group.Go(func() error { return s.walk(ctx, f) })
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error { s.decode(ctx, f.file); return nil })
	}
	err := s.visitAll(ctx, progress, visit)
	cancel()
	if walkErr := group.Wait(); walkErr != nil && (err == nil || errors.Is(err, errWalk)) {
		err = walkErr
	}
	for range len(s.free) {
		f.tasks.Put(<-s.free)
	}
	if err == nil {
		f.remember(s.seen)
		if progress != nil {
			progress(f.size)
		}
	}
	return err
}

// scan is the state of one Scan: tasks go from free to work and ordered, and back to free once they are visited.
type scan struct {
	kinds         Kinds
	free          chan *task
	work, ordered chan *task
	walked        bool // all frames were found; read after ordered is closed
	seen          []frame
}

// newScan takes two tasks per core, so that no core waits while the oldest block is visited.
func (f *File) newScan(kinds Kinds) *scan {
	n := 2*runtime.GOMAXPROCS(0) + 1
	s := &scan{kinds: kinds, free: make(chan *task, n), work: make(chan *task, n), ordered: make(chan *task, n)}
	for range n {
		t, ok := f.tasks.Get().(*task)
		if !ok {
			t = &task{done: make(chan struct{}, 1)}
		}
		s.free <- t
	}
	return s
}

// walk hands every frame with data to the decoders.
func (s *scan) walk(ctx context.Context, f *File) error {
	defer close(s.work)
	defer close(s.ordered)
	for found, err := range f.frames(s.kinds) {
		if err != nil {
			return err
		}
		// work and ordered have room for all tasks, so only a receive from free ever blocks.
		select {
		case t := <-s.free:
			t.frame = found
			s.work <- t
			s.ordered <- t
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.walked = true
	return nil
}

// errWalk means that walk ended early; walk returns the reason.
var errWalk = errors.New("not all frames were found")

// decode decodes tasks until the last.
func (s *scan) decode(ctx context.Context, r io.ReaderAt) {
	for t := range s.work {
		if t.err = ctx.Err(); t.err == nil {
			t.err = t.decodeFrame(r, s.kinds)
		}
		t.done <- struct{}{}
	}
}

// decodeFrame reads, unpacks and decodes the task's blob.
func (t *task) decodeFrame(r io.ReaderAt, wanted Kinds) error {
	if cap(t.blob) < t.size {
		t.blob = make([]byte, t.size+t.size/4)
	}
	t.blob = t.blob[:t.size]
	if _, err := r.ReadAt(t.blob, t.data); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	content, err := t.inflate(t.blob)
	if err == nil {
		t.kinds, err = t.decodeBlock(content, wanted)
	}
	var feature *FeatureError
	if err != nil && !errors.As(err, &feature) {
		return t.damage(err)
	}
	return err
}

// visitAll visits the tasks in file order.
func (s *scan) visitAll(ctx context.Context, progress func(int64), visit func(*Block) error) error {
	for t := range s.ordered {
		<-t.done
		if t.err != nil {
			return t.err
		}
		s.seen = append(s.seen, t.frame)
		if err := ctx.Err(); err != nil {
			return err
		}
		if t.kinds&s.kinds != 0 {
			if err := visit(&t.block); err != nil {
				return err
			}
		}
		if progress != nil {
			progress(t.end())
		}
		s.free <- t
	}
	if !s.walked {
		return errWalk
	}
	return nil
}

// frames yields the frames that may hold the wanted kinds: from the index, otherwise from the file.
func (f *File) frames(kinds Kinds) iter.Seq2[frame, error] {
	f.mutex.Lock()
	index := f.index
	f.mutex.Unlock()
	if index == nil {
		return f.walkFrames
	}
	return func(yield func(frame, error) bool) {
		for _, found := range index {
			if found.kinds&kinds != 0 && !yield(found, nil) {
				return
			}
		}
	}
}

// walkFrames yields the frames with data, by their headers in the file. Blobs of unknown types are skipped, as the format requires.
func (f *File) walkFrames(yield func(frame, error) bool) {
	for number, offset := 1, f.first; ; number++ {
		found, err := readFrame(f.file, number, offset, f.size)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			yield(found, err)
			return
		}
		if offset = found.end(); found.name == dataBlob && !yield(found, nil) {
			return
		}
	}
}

// remember keeps the frames of the first Scan that saw all of them.
func (f *File) remember(seen []frame) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.index == nil {
		f.index = append([]frame{}, seen...)
	}
}
