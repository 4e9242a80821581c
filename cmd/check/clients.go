package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// clientsVariable names a folder with the generators of clients and schemathesis. The tests of the OpenAPI documents read it too.
const clientsVariable = "LIEUDIT_TEST_CLIENTS"

// clientsRelease is part of the name of the folder in the cache. Increase it with the release of any tool: that makes a new
// folder.
const clientsRelease = "clients-1"

// The tools that the tests of the OpenAPI documents run, at the releases that were tested. openapi-typescript does not
// support TypeScript 7.
var (
	pythonTools = []string{"schemathesis==4.32.5", "openapi-python-client==0.29.1", "ruff==0.17.6"}
	nodeTools   = []string{
		"openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@redocly/cli@2.77.0", "@stoplight/spectral-cli@6.16.3",
	}
	goGenerator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
	goRuntime   = []string{"github.com/oapi-codegen/runtime@v1.8.0", "github.com/apapsch/go-jsonmerge/v2@v2.0.0"}
)

// installClientTools returns the folder that clientsVariable names, or one in the user's cache, into which it installs the
// tools once: some 400 MB. An incomplete folder has another name, so that the next check starts over.
func installClientTools(ctx context.Context) (string, error) {
	if given := os.Getenv(clientsVariable); given != "" {
		return given, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the generators of clients: %w", err)
	}
	folder := filepath.Join(cache, "lieudit-check", clientsRelease)
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	fmt.Println("== install:", pythonTools, nodeTools, goGenerator)
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(folder), "fresh-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh) // the remains if a step fails
	for _, install := range []func(context.Context, string) error{installPythonTools, installNodeTools, installGoTools} {
		if err := install(ctx, fresh); err != nil {
			return "", err
		}
	}
	err = os.Rename(fresh, folder)
	if _, statErr := os.Stat(folder); statErr == nil { // another check was faster
		return folder, nil
	}
	return folder, err
}

// installPythonTools installs into a folder for PYTHONPATH, which needs no virtual environment.
func installPythonTools(ctx context.Context, folder string) error {
	args := []string{"python3", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", filepath.Join(folder, "python")}
	if err := newCommand(ctx, append(args, pythonTools...)...).Run(); err != nil {
		return fmt.Errorf("pip install %v: %w", pythonTools, err)
	}
	return nil
}

// installNodeTools runs none of the packages' scripts.
func installNodeTools(ctx context.Context, folder string) error {
	args := []string{"npm", "install", "--prefix", filepath.Join(folder, "node"), "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error"}
	if err := newCommand(ctx, append(args, nodeTools...)...).Run(); err != nil {
		return fmt.Errorf("npm install %v: %w", nodeTools, err)
	}
	return nil
}

// installGoTools builds the generator, and makes a module with everything that generated clients import. Tests copy its
// go.mod and go.sum.
func installGoTools(ctx context.Context, folder string) error {
	module := filepath.Join(folder, "go")
	if err := os.Mkdir(module, 0o755); err != nil {
		return err
	}
	for _, command := range [][]string{
		{"go", "install", goGenerator}, {"go", "mod", "init", "client"}, append([]string{"go", "get"}, goRuntime...),
	} {
		cmd := newCommand(ctx, command...)
		cmd.Dir, cmd.Env = module, append(os.Environ(), "GOBIN="+module, "GOWORK=off")
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%v: %w", command, err)
		}
	}
	return nil
}
