package sheet

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// state is how far a run has come: both positions and the counts belong together.
type state struct {
	Of      origin `json:"de"`
	Read    int64  `json:"lu"`
	Written int64  `json:"ecrit"`
	Tally   Tally  `json:"compte"`
}

// origin is what a run must have in common with the one it goes on with.
type origin struct {
	Size      int64     `json:"octets"`
	Modified  time.Time `json:"modifie_le"`
	Columns   []string  `json:"colonnes"`
	Filters   [2]string `json:"filtres"`
	Separator string    `json:"separateur"`
	Encoding  string    `json:"codage"`
	Vintage   string    `json:"millesime"`
}

func (o origin) equal(p origin) bool {
	o.Columns, p.Columns = slices.Clip(o.Columns), slices.Clip(p.Columns)
	return o.Size == p.Size && o.Modified.Equal(p.Modified) && slices.Equal(o.Columns, p.Columns) && o.Filters == p.Filters &&
		o.Separator == p.Separator && o.Encoding == p.Encoding && o.Vintage == p.Vintage
}

// ErrOther: an unfinished run was about something else.
var ErrOther = errors.New("an unfinished run was of another file, other columns or another vintage")

// ErrBusy: another run writes the same result.
var ErrBusy = errors.New("another run is at work on it")

// draft is the result as far as it is written, in a file of its own, with its state in another.
type draft struct {
	file  *os.File
	text  *bufio.Writer
	state state
	path  string // of the state
}

// openDraft begins a result, or goes on with one.
func (j Job) openDraft(h head) (_ *draft, err error) {
	info, err := os.Stat(j.In)
	if err != nil {
		return nil, err
	}
	of := origin{info.Size(), info.ModTime().UTC(), j.Columns, [2]string{j.Postcode, j.CityCode}, string(h.separator), j.Encoding, j.Vintage}
	file, err := os.OpenFile(j.Out+".part", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	d := &draft{file: file, path: j.Out + ".resume"}
	if err := d.begin(j, h, of); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return d, nil
}

func (d *draft) begin(j Job, h head, of origin) error {
	if err := syscall.Flock(int(d.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s: %w", d.file.Name(), ErrBusy)
	}
	found, err := d.load()
	if err != nil {
		return err
	}
	fresh := !found || j.Restart
	if !fresh && !d.state.Of.equal(of) {
		return fmt.Errorf("%s: %w", d.path, ErrOther)
	}
	if fresh {
		d.state = state{Of: of, Read: h.length}
	}
	if err := d.file.Truncate(d.state.Written); err != nil {
		return err
	}
	if _, err := d.file.Seek(d.state.Written, 0); err != nil {
		return err
	}
	d.text = bufio.NewWriterSize(d.file, 1<<18)
	if !fresh {
		return nil
	}
	if h.bom {
		d.add(bom)
	}
	d.add(h.line(row{raw: h.raw, fields: h.columns}, resultColumns()))
	return d.save()
}

// load reads the state of an unfinished run, if there is one.
func (d *draft) load() (found bool, err error) {
	text, err := os.ReadFile(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(text, &d.state)
}

// add writes text, which is not sure before save. An error comes up there.
func (d *draft) add(text string) {
	n, _ := d.text.WriteString(text)
	d.state.Written += int64(n)
}

// save makes what was added sure, then the state that counts it.
func (d *draft) save() error {
	if err := errors.Join(d.text.Flush(), d.file.Sync()); err != nil {
		return err
	}
	text, err := json.Marshal(d.state)
	if err != nil {
		return err
	}
	next, err := os.Create(d.path + ".new")
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	if err := errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), d.path)
}

func (d *draft) close() error { return d.file.Close() }

// finish puts the result into place.
func (d *draft) finish(out string) error {
	err := errors.Join(d.save(), d.file.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(strings.TrimSuffix(d.path, ".resume")+".part", out); err != nil {
		return err
	}
	return os.Remove(d.path)
}
