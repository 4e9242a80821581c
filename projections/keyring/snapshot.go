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
	mark     eventstore.Mark
	words    []string
	stopped  []string // events that cannot be used
	accounts frozen[account]
	keys     frozen[key]
	live     int // keys
}

// header begins every file of the present format; another format is another header.
const header = "lieudit key ring, format 2\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// write puts the snapshot in the place of the file. It is not synced: what a power loss leaves of it fails
// its checksum, and a snapshot can be missed.
func (s snapshot) write(file string) error {
	f, err := os.OpenFile(file+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(s.encode(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

func (s snapshot) encode(f io.Writer) error {
	sum := crc32.New(castagnoli)
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<16)
	w.Write(s.appendHead(nil)) // a bufio.Writer keeps its first error
	s.accounts.each(func(a *account, text string, _ []string) {
		w.Write(appendText(appendAccount(w.AvailableBuffer(), a), text))
	})
	s.keys.each(func(k *key, text string, list []string) {
		if s.useful(k) {
			w.Write(appendTexts(appendText(appendKey(w.AvailableBuffer(), k), text), list))
		}
	})
	w.WriteByte(byte(none))
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := f.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	return err
}

func (s snapshot) appendHead(b []byte) []byte {
	b = append(b, header...)
	b = append(b, s.mark.Log[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.mark.Position))
	b = append(b, s.mark.Event[:]...)
	b = appendTexts(b, s.words)
	b = appendTexts(b, s.stopped)
	b = binary.AppendUvarint(b, uint64(s.accounts.rows))
	return binary.AppendUvarint(b, uint64(s.live))
}

// useful: the key can ever be of use again.
func (s snapshot) useful(k *key) bool {
	if k.kind == none || k.account == 0 {
		return k.kind != none
	}
	n := k.account - 1
	return !s.accounts.pages[n/pageRows].rows[n%pageRows].closed
}

// load reads a snapshot back. There is none, and no error, when there is no file.
func load(file string) (*state, eventstore.Mark, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, eventstore.Mark{}, nil
	}
	if err != nil {
		return nil, eventstore.Mark{}, err
	}
	return decode(data)
}

func decode(data []byte) (*state, eventstore.Mark, error) {
	if len(data) < len(header)+4 || string(data[:len(header)]) != header {
		return nil, eventstore.Mark{}, errors.New("not a snapshot of this format")
	}
	body, sum := data[:len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, eventstore.Mark{}, errors.New("the checksum does not fit")
	}
	c := &cursor{rest: body[len(header):]}
	s, mark := c.state()
	if c.bad || len(c.rest) > 0 {
		return nil, eventstore.Mark{}, fmt.Errorf("damaged, %d bytes before its end", len(c.rest))
	}
	return s, mark, nil
}
