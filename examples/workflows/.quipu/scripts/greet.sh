#!/bin/sh
echo "script says {{.inputs.word}}"
