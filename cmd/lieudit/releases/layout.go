package releases

import (
	"errors"
	"io/fs"
	"os"
)

// Layout holds the paths of a release within a data folder, with slashes: its file, the file that names the current release, and the
// one that names the last release of real data. A folder with these files serves the release.
type Layout struct{ File, CurrentFile, LastRealFile string }

// LayoutOf returns the layout of a release.
func (f Folder[F]) LayoutOf(name string) Layout {
	k := f.kind
	return Layout{k.FolderName + "/" + name + k.Extension, k.FolderName + "/" + currentFile, k.LastRealFile}
}

// ServedOrCurrent returns the name of the release that the running service answers from if its file exists, otherwise that of the current
// one; "" if there is none.
func (f Folder[F]) ServedOrCurrent() (string, error) {
	name, running, err := f.ServedName()
	if err != nil {
		return "", err
	}
	if running && name != "" {
		if _, err := os.Stat(f.Path(name)); !errors.Is(err, fs.ErrNotExist) {
			return name, err
		}
	}
	return f.Current()
}
