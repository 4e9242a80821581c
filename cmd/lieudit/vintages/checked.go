package vintages

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"lieudit/queries/address/vintage"
)

// verifiedFile is the file, in the folder of who serves, that says which file was found whole.
const verifiedFile = "checked"

// fileFingerprint is what a file is told by from one that has changed.
func fileFingerprint(v *vintage.Vintage) string {
	inode := uint64(0)
	if stat, ok := v.Info().Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	return fmt.Sprintf("%s %d %d %d", v.Digest(), inode, v.Size(), v.Modified().UnixNano())
}

// wasVerified says whether the very file was found whole before.
func (f Folder) wasVerified(v *vintage.Vintage) bool {
	noted, err := readNameFile(filepath.Join(f.dir, servingFolder, verifiedFile))
	return err == nil && noted == fileFingerprint(v)
}

func (f Folder) recordVerified(v *vintage.Vintage) error {
	dir := filepath.Join(f.dir, servingFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if f.wasVerified(v) {
		return nil
	}
	return replaceNameFile(filepath.Join(dir, verifiedFile), fileFingerprint(v))
}

// forgetVerified has the next start check a vintage before it serves it.
func (f Folder) forgetVerified() { os.Remove(filepath.Join(f.dir, servingFolder, verifiedFile)) }
