package keyring

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"lieudit/eventstore"
)

// snapshot is what a ring knew at a mark.
type snapshot struct {
	checkpoint eventstore.Checkpoint
	words      []string
	stopped    []string // events that cannot be used
	accounts   pagesSnapshot[account]
	keys       pagesSnapshot[key]
	live       int // keys
}

// snapshotHeader begins every file of the present format; another format is another snapshotHeader.
const snapshotHeader = "lieudit key ring, format 2\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writeFile puts the snapshot in the place of the file. It is not synced: what a power loss leaves of it fails
// its checksum, and a snapshot can be missed.
func (s snapshot) writeFile(file string) error {
	f, err := os.OpenFile(file+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(s.marshal(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

func (s snapshot) marshal(f io.Writer) error {
	sum := crc32.New(castagnoli)
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<16)
	w.Write(s.appendHead(nil)) // a bufio.Writer keeps its first error
	s.accounts.each(func(a *account, text string, _ []string) {
		w.Write(appendText(appendAccount(w.AvailableBuffer(), a), text))
	})
	s.keys.each(func(k *key, text string, list []string) {
		if s.canBeUsed(k) {
			w.Write(appendTexts(appendText(appendKey(w.AvailableBuffer(), k), text), list))
		}
	})
	w.WriteByte(byte(freeRow))
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := f.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	return err
}

func (s snapshot) appendHead(b []byte) []byte {
	b = append(b, snapshotHeader...)
	b = append(b, s.checkpoint.Log[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.checkpoint.Position))
	b = append(b, s.checkpoint.Event[:]...)
	b = appendTexts(b, s.words)
	b = appendTexts(b, s.stopped)
	b = binary.AppendUvarint(b, uint64(s.accounts.rows))
	return binary.AppendUvarint(b, uint64(s.live))
}

// canBeUsed: the key can ever be of use again.
func (s snapshot) canBeUsed(k *key) bool {
	if k.kind == freeRow || k.account == 0 {
		return k.kind != freeRow
	}
	n := k.account - 1
	return !s.accounts.pages[n/pageRows].rows[n%pageRows].closed
}

// readSnapshotFile reads a snapshot back. There is none, and no error, when there is no file.
func readSnapshotFile(file string) (*state, eventstore.Checkpoint, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, eventstore.Checkpoint{}, nil
	}
	if err != nil {
		return nil, eventstore.Checkpoint{}, err
	}
	return unmarshalSnapshot(data)
}

func unmarshalSnapshot(data []byte) (*state, eventstore.Checkpoint, error) {
	if len(data) < len(snapshotHeader)+4 || string(data[:len(snapshotHeader)]) != snapshotHeader {
		return nil, eventstore.Checkpoint{}, errors.New("not a snapshot of this format")
	}
	body, sum := data[:len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, eventstore.Checkpoint{}, errors.New("the checksum does not fit")
	}
	c := &cursor{rest: body[len(snapshotHeader):]}
	s, checkpoint := c.state()
	if c.bad || len(c.rest) > 0 {
		return nil, eventstore.Checkpoint{}, fmt.Errorf("damaged, %d bytes before its end", len(c.rest))
	}
	return s, checkpoint, nil
}
