package main

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lieudit/queries/route/routerprocess"
)

// routerWheels are the packages on PyPI that contain the programs of OSRM and Valhalla. Only the programs are used, no
// Python.
var routerWheels = []string{"osrm-bindings==26.10.0", "pyvalhalla==3.9.1"}

// wheelSums are the SHA-256 sums of the files of routerWheels, by their names.
var wheelSums = map[string]string{
	"osrm_bindings-26.10.0-cp312-abi3-manylinux_2_28_x86_64.whl":  "840d6f82812eb9f9e17c71eb9083dfa15f3be2bfec4965c32aefa48b00d3a951",
	"osrm_bindings-26.10.0-cp312-abi3-manylinux_2_28_aarch64.whl": "df2d386949756b3de034662d2abb378ff1d60ee9b0d5e33c0da4080dc29164a4",
	"pyvalhalla-3.9.1-cp312-abi3-manylinux_2_28_x86_64.whl":       "7b49c5e5f86cefd555b473aaaf34df3305889d30aa889b8abd3b4c2acc622271",
	"pyvalhalla-3.9.1-cp312-abi3-manylinux_2_28_aarch64.whl":      "6ebe5f9dd6ce3b16413f939a271d68e64a4addd44df8a802a8eda0b9ca0bf16f",
}

// wheelFolders are the unpacked folders of the wheels: programs, the profiles of OSRM, and libraries, which the programs look
// for next to themselves.
var wheelFolders = []string{"osrm/bin/", "osrm/share/profiles/", "valhalla/bin/", "pyvalhalla.libs/"}

// installRouters returns the folder of the programs of OSRM and Valhalla: the one that routerprocess.FolderVariable names, or
// one in the user's cache. It downloads them once, 58 MB, and unpacks them to 300 MB.
func installRouters(ctx context.Context) (string, error) {
	if given := os.Getenv(routerprocess.FolderVariable); given != "" {
		return given, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the programs of OSRM and Valhalla: %w", err)
	}
	parent := filepath.Join(cache, "lieudit-check")
	folder := filepath.Join(parent, strings.NewReplacer("==", "-").Replace(strings.Join(routerWheels, "-")))
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	fmt.Println("== install:", routerWheels)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(parent, "fresh-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh) // the remains if a step fails
	if err := downloadRouters(ctx, fresh); err != nil {
		return "", err
	}
	err = os.Rename(filepath.Join(fresh, "programs"), folder)
	if _, statErr := os.Stat(folder); statErr == nil { // another check was faster
		return folder, nil
	}
	return folder, err
}

// downloadRouters downloads the wheels into a folder, checks them, and unpacks them to its folder programs.
func downloadRouters(ctx context.Context, folder string) error {
	args := []string{"python3", "-m", "pip", "download", "-q", "--disable-pip-version-check",
		"--no-deps", "--only-binary", ":all:", "--python-version", "312", "-d", folder}
	if err := newCommand(ctx, append(args, routerWheels...)...).Run(); err != nil {
		return fmt.Errorf("pip download %v: %w", routerWheels, err)
	}
	wheels, err := filepath.Glob(filepath.Join(folder, "*.whl"))
	if err != nil || len(wheels) != len(routerWheels) {
		return fmt.Errorf("pip downloaded %v of %v: %w", wheels, routerWheels, err)
	}
	for _, wheel := range wheels {
		if err := checkSum(wheel); err != nil {
			return err
		}
		if err := unpackWheel(wheel, filepath.Join(folder, "programs")); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(wheel), err)
		}
	}
	return nil
}

// checkSum fails if a wheel is not the pinned one.
func checkSum(wheel string) error {
	file, err := os.Open(wheel)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
	if got, want := hex.EncodeToString(sum.Sum(nil)), wheelSums[filepath.Base(wheel)]; got != want {
		return fmt.Errorf("%s has the sum %s, want %q: no such file was tried", filepath.Base(wheel), got, want)
	}
	return nil
}

// unpackWheel unpacks the wheelFolders of a wheel, which is a zip file, and keeps the permissions of files.
func unpackWheel(wheel, folder string) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer archive.Close()
	for _, f := range archive.File {
		isWanted := slices.ContainsFunc(wheelFolders, func(prefix string) bool { return strings.HasPrefix(f.Name, prefix) })
		if !isWanted || f.Mode().IsDir() {
			continue
		}
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("%q leads out of the folder", f.Name)
		}
		if err := unpackFile(f, filepath.Join(folder, filepath.FromSlash(f.Name))); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// unpackFile writes one file of an archive.
func unpackFile(f *zip.File, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	content, err := f.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.Mode()&fs.ModePerm)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
