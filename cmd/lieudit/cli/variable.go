package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"
)

// envVariable is an environment envVariable that a flag mirrors. An empty one counts as not set, as compose files
// leave them.
type envVariable struct {
	name string
	env  func(string) (string, bool)
}

func (p Program) envSource(name string) cli.ValueSourceChain {
	return cli.NewValueSourceChain(envVariable{name, p.LookupEnv})
}

func (v envVariable) Lookup() (string, bool) {
	value, ok := v.env(v.name)
	return value, ok && value != ""
}

func (v envVariable) IsFromEnv() bool  { return true }
func (v envVariable) Key() string      { return v.name }
func (v envVariable) String() string   { return fmt.Sprintf("environment variable %q", v.name) }
func (v envVariable) GoString() string { return "variable(" + v.name + ")" }

// stringFlag is a flag --some-name that LIEUDIT_SOME_NAME mirrors.
func (p Program) stringFlag(name, value, usage string) *cli.StringFlag {
	key := "LIEUDIT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	return &cli.StringFlag{Name: name, Value: value, Usage: usage, Sources: p.envSource(key)}
}

func (p Program) dataFlag() cli.Flag {
	f := p.stringFlag("data", "./lieudit-data", "`FOLDER` for everything embedded")
	f.TakesFile = true
	return f
}
