"""LlamaIndex adapter: conversion and LlamaIndex's habits; every rule of memory is in `slidemem`."""
