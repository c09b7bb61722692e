// Reads a dashboard with Grafana's own SDK: unknown fields, missing ones and values that its schema of dashboards, of
// panels and of Prometheus queries does not have are faults. Usage: grafana-check dashboard.json
package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func check(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	plugins.RegisterDefaultPlugins()
	var found dashboard.Dashboard
	// Both return lists of faults, which may be empty.
	if err := found.UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
		return err
	}
	if err := found.Validate(); err != nil && err.Error() != "" {
		return err
	}
	return nil
}

func main() {
	if err := check(os.Args[1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
