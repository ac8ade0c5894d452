package option

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// The functions here operate on the pointer that Option.Field returns.

var durationType = reflect.TypeFor[time.Duration]()

// elem returns the value that a field points to.
func elem(field any) reflect.Value { return reflect.ValueOf(field).Elem() }

func isSet(field any) bool {
	if v, ok := field.(Value); ok {
		return v.String() != ""
	}
	v := elem(field)
	if v.Kind() == reflect.Slice {
		return !v.IsNil()
	}
	return !v.IsZero()
}

func unset(field any) {
	if v, ok := field.(Value); ok {
		v.Unset()
		return
	}
	elem(field).SetZero()
}

func typeOf(field any) string {
	switch v := field.(type) {
	case interface{ Type() string }:
		return v.Type()
	case Value:
		return "text"
	}
	t := reflect.TypeOf(field).Elem()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == durationType:
		return "time"
	case t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		return "list"
	}
	return "int"
}

// set sets a field from a setting.
func set(field any, x Setting) error {
	if v, ok := field.(List); ok && x.List != nil {
		v.SetList(x.List)
		return nil
	}
	if v, ok := field.(Value); ok {
		if x.List != nil {
			return errors.New("want one value, not a list")
		}
		return v.Set(x.Text)
	}
	v := elem(field)
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		return setList(v, x)
	case reflect.Pointer:
		to := reflect.New(v.Type().Elem())
		if err := setScalar(to.Elem(), x); err != nil {
			return err
		}
		v.Set(to)
		return nil
	}
	return setScalar(v, x)
}

func setList(v reflect.Value, x Setting) error {
	list := x.List
	if list == nil {
		var err error
		if list, err = splitList(x.Text); err != nil {
			return err
		}
	}
	to := reflect.MakeSlice(reflect.SliceOf(v.Type().Elem()), len(list), len(list))
	for i, text := range list {
		if err := setScalar(to.Index(i), Setting{Text: text}); err != nil {
			if len(list) > 1 {
				err = fmt.Errorf("%w in place of %s", err, text)
			}
			return err
		}
	}
	if v.Kind() == reflect.Array {
		if len(list) != v.Len() {
			return fmt.Errorf("want %d numbers, as 4,13", v.Len())
		}
		reflect.Copy(v, to)
		return nil
	}
	v.Set(to)
	return nil
}

func setScalar(v reflect.Value, x Setting) error {
	text := x.Text
	if x.List != nil {
		return errors.New("want " + wanted(v) + ", not a list")
	}
	var err error
	switch {
	case v.Type() == durationType:
		var d time.Duration
		if d, err = time.ParseDuration(text); err == nil {
			v.SetInt(int64(d))
		}
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		var b bool
		if b, err = strconv.ParseBool(text); err == nil {
			v.SetBool(b)
		}
	case v.CanInt():
		var n int64
		if n, err = strconv.ParseInt(text, 0, v.Type().Bits()); err == nil {
			v.SetInt(n)
		}
	case v.CanUint():
		var n uint64
		if n, err = strconv.ParseUint(text, 0, v.Type().Bits()); err == nil {
			v.SetUint(n)
		}
	case v.CanFloat():
		var f float64
		if f, err = strconv.ParseFloat(text, 64); err == nil {
			v.SetFloat(f)
		}
	default:
		panic("no option has a field of type " + v.Type().String())
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errors.New("want a number of usual size")
	case err != nil:
		return errors.New("want " + wanted(v))
	}
	return nil
}

// wanted describes the values that a field accepts.
func wanted(v reflect.Value) string {
	switch {
	case v.Type() == durationType:
		return "a time, as 90s, 10m or 1h"
	case v.Kind() == reflect.String:
		return "a word"
	case v.Kind() == reflect.Bool:
		return "true or false"
	case v.CanUint():
		return "a whole number, not negative"
	case v.CanInt():
		return "a whole number"
	}
	return "a number"
}

// each calls number or text for the value of a field, or for each element of a list.
func each(field any, number func(float64) error, text func(string) error) error {
	switch v := field.(type) {
	case List:
		for _, s := range v.List() {
			if err := text(s); err != nil {
				return err
			}
		}
		return nil
	case Checker:
		return v.Check()
	case interface{ Float() float64 }:
		return number(v.Float())
	case Value:
		return text(v.String())
	}
	v := elem(field)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	one := func(v reflect.Value) error {
		switch {
		case v.Kind() == reflect.String:
			return text(v.String())
		case v.CanInt():
			return number(float64(v.Int()))
		case v.CanUint():
			return number(float64(v.Uint()))
		case v.CanFloat():
			if x := v.Float(); math.IsNaN(x) || math.IsInf(x, 0) {
				return errors.New("must be finite")
			}
			return number(v.Float())
		}
		return nil
	}
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return one(v)
	}
	for i := range v.Len() {
		if err := one(v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// textOf returns the value of a field in the form that set accepts.
func textOf(field any) string { return settingOf("", field).String() }

// settingOf returns the setting that reproduces a field.
func settingOf(name string, field any) Setting {
	x := Setting{Name: name}
	if v, ok := field.(List); ok {
		x.List = append([]string{}, v.List()...)
		return x
	}
	if v, ok := field.(Value); ok {
		x.Text = v.String()
		return x
	}
	v := elem(field)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		x.Text = fmt.Sprint(v.Interface())
		return x
	}
	x.List = []string{}
	for i := range v.Len() {
		x.List = append(x.List, fmt.Sprint(v.Index(i).Interface()))
	}
	return x
}

// splitList splits a list as on a command line: at commas, with quotes around elements that contain some.
func splitList(text string) ([]string, error) {
	if text == "" {
		return []string{}, nil
	}
	list, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return nil, errors.New("want a list with commas between")
	}
	return list, nil
}

func joinList(list []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(list)
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
