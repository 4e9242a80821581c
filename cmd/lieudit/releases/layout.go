package releases

import (
	"errors"
	"io/fs"
	"os"
)

// Layout is where a data folder keeps a release, as paths within it with slashes: its file, the file that names the current release,
// and the one that names the last release of real data. A folder with these files serves the release.
type Layout struct{ File, CurrentFile, LastRealFile string }

// LayoutOf is the layout of a release.
func (f Folder[F]) LayoutOf(name string) Layout {
	k := f.kind
	return Layout{k.FolderName + "/" + name + k.Extension, k.FolderName + "/" + currentFile, k.LastRealFile}
}

// ServedOrCurrent is the name of the release that the running service answers from, where its file is there, otherwise that of the current
// one; "" when there is none.
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
