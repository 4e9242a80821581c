package vintages

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"lieudit/queries/address/vintage"
)

// checked is the file, in the folder of who serves, that says which file was found whole.
const checked = "checked"

// fingerprint is what a file is told by from one that has changed.
func fingerprint(v *vintage.Vintage) string {
	inode := uint64(0)
	if stat, ok := v.Info().Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	return fmt.Sprintf("%s %d %d %d", v.Digest(), inode, v.Size(), v.Modified().UnixNano())
}

// wasChecked says whether the very file was found whole before.
func (f Folder) wasChecked(v *vintage.Vintage) bool {
	noted, err := readName(filepath.Join(f.dir, serving, checked))
	return err == nil && noted == fingerprint(v)
}

func (f Folder) noteChecked(v *vintage.Vintage) error {
	seat := filepath.Join(f.dir, serving)
	if err := os.MkdirAll(seat, 0o700); err != nil {
		return err
	}
	if f.wasChecked(v) {
		return nil
	}
	return writeName(filepath.Join(seat, checked), fingerprint(v))
}

// forgetChecked has the next start check a vintage before it serves it.
func (f Folder) forgetChecked() { os.Remove(filepath.Join(f.dir, serving, checked)) }
